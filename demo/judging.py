"""The scripted judge: compares candidates side by side against its own careful reading.

Owns the judge's side of the verdict format. It reads what any judge is sent: the task's messages,
criteria and vetoes by name and question, the outputs. It has none of the teacher's blind spots, and errs on
`ERROR_RATE` of the groups: comparing answers is easier than writing one.
"""

import json
import re
from collections.abc import Mapping
from typing import Any

from demo import guessing
from demo.reading import read
from demo.teacher_rules import chance, is_triage, misread

ERROR_RATE = 0.025
SCHEMA_NAME = "stepdown_verdicts"

_INJECTION = re.compile(r"ignore (?:all|any|the|previous|your)|as (?:a|the) judge|score (?:this|me)", re.I)


def is_judging(response_format: Mapping[str, Any] | None) -> bool:
    """Whether a request asks for verdicts."""
    return ((response_format or {}).get("json_schema") or {}).get("name") == SCHEMA_NAME


def verdicts(content: str, seed: int) -> str:
    """The verdicts as JSON for the judge's request `content`. Raises ValueError when it is not one."""
    try:
        request = json.loads(content)
        messages, candidates = request["task"]["messages"], request["candidates"]
        names = [c["name"] for c in request["criteria"]], [v["name"] for v in request.get("vetoes", [])]
        pairs = [(str(c["id"]), str(c["output"])) for c in candidates]
    except (ValueError, KeyError, TypeError) as error:
        raise ValueError(f"not a request for verdicts: {error!r}") from error
    wanted = _wanted(messages, f"{seed}|{content}")
    found = [_verdict(name, output, wanted, *names) for name, output in pairs]
    return json.dumps({"verdicts": found}, separators=(",", ":"))


def _wanted(messages: list[dict[str, Any]], key: str) -> dict[str, Any] | str:
    """What the judge holds to be right: fields where the job has fields, a text otherwise."""
    if is_triage(messages):
        fields = read(guessing.last_user_text(messages)).fields()
        return misread(fields, key) if chance(f"judge|{key}") < ERROR_RATE else fields
    guess = guessing.guess(messages)
    parsed = _parse(guess)
    return guess if parsed is None else parsed


def _verdict(
    name: str, output: str, wanted: dict[str, Any] | str, criteria: list[str], vetoes: list[str]
) -> dict[str, Any]:
    right = _rights(output, wanted)
    scores = {criterion: _score(criterion, right) for criterion in criteria}
    wrong = [field for field, score in right.items() if score < 1]
    reason = "all as I read it" if not wrong else f"not as I read it: {', '.join(wrong)}"
    return {
        "id": name,
        "criteria": scores,
        "vetoes": {veto: _veto(veto, output, wanted) for veto in vetoes},
        "reason": reason,
    }


def _rights(output: str, wanted: dict[str, Any] | str) -> dict[str, float]:
    """By field, 1 where the output has what is wanted; for a text, its overlap with the judge's own."""
    if isinstance(wanted, str):
        return {"text": _overlap(output, wanted)}
    parsed = _parse(output)
    if parsed is None:
        return dict.fromkeys([*wanted, "format"], 0.0)
    rights = {f: float(f in parsed and _same(parsed[f], wanted[f])) for f in wanted}
    return rights | {"format": float(set(parsed) == set(wanted))}


def _score(criterion: str, right: Mapping[str, float]) -> float:
    """A criterion named after a field is that field's; any other is all or part of the whole."""
    field = criterion.removesuffix("_right")
    if field in right:
        return right[field]
    if field in ("all", "exact", "label"):
        return float(all(score == 1 for score in right.values()))
    if re.search("format|json|valid|schema", field):
        return right.get("format", 1.0)
    return round(sum(right.values()) / len(right), 3)


def _veto(veto: str, output: str, wanted: dict[str, Any] | str) -> bool:
    """What can be vetoed here: an answer that is empty, no JSON, addressed to the judge, or a drone."""
    if not output.strip():
        return True
    if re.search("format|json|schema", veto):
        return isinstance(wanted, dict) and _parse(output) is None
    words = output.split()
    return bool(_INJECTION.search(output)) or (len(words) > 20 and len(set(words)) < len(words) / 5)


def _parse(output: str) -> dict[str, Any] | None:
    try:
        parsed = json.loads(output)
    except ValueError:
        return None
    return parsed if isinstance(parsed, dict) else None


def _same(value: Any, wanted: Any) -> bool:
    return type(value) is type(wanted) and value == wanted


def _overlap(output: str, wanted: str) -> float:
    mine, theirs = set(wanted.lower().split()), set(output.lower().split())
    return round(2 * len(mine & theirs) / (len(mine) + len(theirs)), 3) if mine and theirs else 0.0
