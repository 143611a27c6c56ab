"""Owns the rubric: weighted criteria, vetoes and checks, and how they make a reward. Asks nobody."""

import hashlib
import json
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self

from rl.judge.checks import Check


class RubricError(ValueError):
    """A rubric that cannot score; the message says what is wrong with it."""


@dataclass(frozen=True, slots=True)
class Criterion:
    """One question answered by a number from 0 (no) to 1 (yes); weights count relative to their sum."""

    name: str
    question: str
    weight: float = 1.0


@dataclass(frozen=True, slots=True)
class Veto:
    """One question whose yes makes the reward 0."""

    name: str
    question: str


@dataclass(frozen=True, slots=True)
class Rubric:
    """What a good answer is."""

    criteria: tuple[Criterion, ...]
    vetoes: tuple[Veto, ...] = ()
    checks: tuple[Check, ...] = field(default=())

    def __post_init__(self) -> None:
        names = [item.name for item in self.criteria] + [veto.name for veto in self.vetoes]
        if not self.criteria:
            raise RubricError("a rubric needs at least one criterion")
        if len(set(names)) < len(names):
            raise RubricError(f"two criteria or vetoes share a name: {', '.join(names)}")
        if any(item.weight < 0 for item in self.criteria) or not sum(item.weight for item in self.criteria):
            raise RubricError("criteria need weights of 0 or more, and one above 0")

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """From {criteria: [{name, question, weight}], vetoes: [{name, question}], checks: [{kind, …}]}."""
        return cls(
            tuple(Criterion(**item) for item in data["criteria"]),
            tuple(Veto(**item) for item in data.get("vetoes", ())),
            tuple(Check.from_dict(item) for item in data.get("checks", ())),
        )

    def to_dict(self) -> dict[str, list[dict[str, Any]]]:
        """The inverse of `from_dict`."""
        return {
            "criteria": [{"name": c.name, "question": c.question, "weight": c.weight} for c in self.criteria],
            "vetoes": [{"name": v.name, "question": v.question} for v in self.vetoes],
            "checks": [check.to_dict() for check in self.checks],
        }

    def fingerprint(self) -> str:
        """Equal for rubrics that score alike."""
        return hashlib.sha256(json.dumps(self.to_dict(), sort_keys=True).encode()).hexdigest()

    def reward(self, criteria: Mapping[str, float], vetoes: Mapping[str, bool]) -> float:
        """Σ weight · score in [0, 1], or 0 under a veto."""
        if any(vetoes.values()):
            return 0.0
        total = sum(item.weight for item in self.criteria)
        return sum(item.weight * criteria[item.name] for item in self.criteria) / total

    def failed_checks(self, output: str) -> tuple[str, ...]:
        """Names of the checks that this output fails."""
        return tuple(check.kind for check in self.checks if not check.passes(output))


def default_rubric(answers: Sequence[str]) -> Rubric:
    """A first rubric from a task's captured answers: fields of a JSON object, a short label, or free text."""
    if not answers:
        raise RubricError("a rubric cannot be guessed from no answers")
    keys = _common_keys(answers)
    if keys:
        whole = Criterion("all_right", "Are all fields of the output right at once, none missing or added?", 0.5)
        parts = [
            Criterion(f"{key}_right", f"Is the value of {json.dumps(key)} right for this input?", 0.5 / len(keys))
            for key in keys
        ]
        return Rubric((*parts, whole), checks=(Check("json_keys", {"keys": list(keys)}),))
    if _are_labels(answers):
        question = "Is this label the right one for this input?"
        longest = max(len(answer.strip()) for answer in answers)
        return Rubric((Criterion("label_right", question),), checks=(Check("max_chars", {"limit": 2 * longest}),))
    return Rubric(
        (
            Criterion("correct", "Is everything that the output says right and supported by the input?", 0.5),
            Criterion("complete", "Does the output do all that was asked for, with nothing needless?", 0.35),
            Criterion("style", "Do form, tone and language suit what the instructions ask for?", 0.15),
        ),
        checks=(Check("not_empty"),),
    )


def _common_keys(answers: Sequence[str]) -> tuple[str, ...]:
    """The keys that at least nine in ten answers have, as exactly these; empty if there is no such set."""
    seen: Counter[tuple[str, ...]] = Counter()
    for answer in answers:
        try:
            value = json.loads(answer)
        except ValueError:
            continue
        if isinstance(value, dict) and value:
            seen[tuple(sorted(value))] += 1
    if not seen:
        return ()
    keys, count = seen.most_common(1)[0]
    return keys if count >= 0.9 * len(answers) else ()


def _are_labels(answers: Sequence[str]) -> bool:
    """Short answers that recur: at most five words, and on average each seen twice or more."""
    texts = [answer.strip() for answer in answers]
    return all(text and len(text.split()) <= 5 for text in texts) and len(set(texts)) <= max(2, len(texts) // 2)
