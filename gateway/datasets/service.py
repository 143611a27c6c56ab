"""Owns freezing calls into an immutable dataset version, and reading it back. Must not commit.

A call becomes an example if it was answered whole by an upstream whose terms allow training (law 5). Answers of a
student never do: it would learn its own mistakes. Prompts of the train split that have no such answer are kept beside,
to be practised on: nothing but what the app itself sent.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.capture.bodies import load_request, load_response
from gateway.capture.dialects import dialect_of
from gateway.core.errors import StepdownError, not_found
from gateway.core.jsontext import storable
from gateway.core.messages import plain
from gateway.datasets import repository
from gateway.datasets.schemas import PRACTICE, SPLITS, DatasetRules, Example, Minimums
from gateway.datasets.splits import content_hash, split_of
from gateway.models import Call, Dataset, DatasetRow, DatasetVersion, Task, Upstream

Row = tuple[str, Example]


def freeze(session: Session, task: Task, rules: DatasetRules, minimums: Minimums) -> DatasetVersion:
    """The task's calls as a new version, or its latest version where nothing has changed since.

    The first freeze fixes the dataset's shares; later ones keep them. Raises StepdownError 409 when there is too
    little that may be learned from, saying what is missing.
    """
    dataset = repository.dataset_of_task(session, task.project_id, task.id)
    if dataset is None:
        dataset = Dataset(project_id=task.project_id, task_id=task.id, name=task.slug, rules=rules.model_dump())
        repository.add(session, dataset)
    rules = DatasetRules.model_validate(dataset.rules)
    known = repository.upstreams(session, task.project_id)
    examples, prompts, counts, refused = _examples(session, task, known)
    rows: list[Row] = [(split_of(example.input_hash, rules), example) for example in examples]
    rows += [(PRACTICE, prompt) for prompt in prompts if split_of(prompt.input_hash, rules) == "train"]
    counts.update(dict.fromkeys((*SPLITS, PRACTICE), 0) | Counter(split for split, _ in rows))
    _require(task, counts, minimums, [known[upstream] for upstream in sorted(refused)])
    latest, digest = repository.latest_version(session, dataset.id), content_hash(rows)
    if latest is not None and latest.content_hash == digest:
        return latest
    version = DatasetVersion(
        project_id=task.project_id,
        dataset_id=dataset.id,
        version=latest.version + 1 if latest else 1,
        content_hash=digest,
        counts=dict(counts),
        rules=rules.model_dump() | {"shape": _shape(examples)},
    )
    repository.add(session, version)
    repository.add_rows(session, [_row(version, n, split, example) for n, (split, example) in enumerate(rows)])
    return version


def train_rows(session: Session, project_id: UUID, version_id: UUID) -> Sequence[DatasetRow]:
    """What may be learned from, in order."""
    return _readable(session, project_id, version_id, "train")


def validation_rows(session: Session, project_id: UUID, version_id: UUID) -> Sequence[DatasetRow]:
    """What checkpoints are chosen on, in order."""
    return _readable(session, project_id, version_id, "validation")


def practice_rows(session: Session, project_id: UUID, version_id: UUID) -> Sequence[DatasetRow]:
    """Prompts to practise on that have no answer to learn from (`target` is {}), in order."""
    return _readable(session, project_id, version_id, "practice")


def open_test(session: Session, project_id: UUID, version_id: UUID) -> Sequence[DatasetRow]:
    """The test rows, in order. Counted: each opening wears the evidence out a little."""
    get_version(session, project_id, version_id)
    return repository.open_test(session, version_id)


def get_version(session: Session, project_id: UUID, version_id: UUID) -> DatasetVersion:
    """The version. Raises StepdownError 404."""
    version = repository.version(session, project_id, version_id)
    if version is None:
        raise not_found("dataset_version", version_id)
    return version


def _readable(
    session: Session, project_id: UUID, version_id: UUID, split: Literal["train", "validation", "practice"]
) -> Sequence[DatasetRow]:
    get_version(session, project_id, version_id)
    return repository.rows(session, version_id, split)


def _examples(
    session: Session, task: Task, known: Mapping[UUID, Upstream]
) -> tuple[list[Example], list[Example], Counter[str], set[UUID]]:
    """Distinct examples in the order of their first call, prompts that have no answer to learn from, what was left out,
    and whose permission was missing."""
    found: dict[bytes, Example] = {}
    prompts: dict[bytes, Example] = {}
    counts: Counter[str] = Counter(calls=0, duplicates=0, untrainable=0, forbidden=0, student=0)
    refused: set[UUID] = set()
    for call in repository.calls_of_task(session, task.project_id, task.id):
        counts["calls"] += 1
        reason = _left_out(call, known)
        if reason is None and call.input_hash in found:
            reason = "duplicates"
        asked = None if reason == "duplicates" else _asked(session, call)
        example = _example(session, call, asked) if asked and reason is None else None
        if example is None:
            if asked is not None and reason != "duplicates":
                prompts.setdefault(asked.input_hash, asked)
            counts[reason or "untrainable"] += 1
            if reason == "forbidden" and call.upstream_id is not None:
                refused.add(call.upstream_id)
        else:
            found[example.input_hash] = example
    return list(found.values()), [prompts[key] for key in prompts if key not in found], counts, refused


def _left_out(call: Call, known: Mapping[UUID, Upstream]) -> str | None:
    """Why a call cannot become an example; None where it may."""
    if call.served_by == "student":
        return "student"
    if call.served_by != "upstream" or not (call.trainable and call.complete) or call.input_hash is None:
        return "untrainable"
    upstream = known.get(call.upstream_id) if call.upstream_id else None
    return None if upstream is not None and upstream.train_on_output == "allowed" else "forbidden"


def _example(session: Session, call: Call, asked: Example) -> Example | None:
    """The call as an example; None where its answer was not kept or holds more than text and tool calls."""
    response = load_response(session, call)
    choices = dialect_of(call.endpoint).whole(response).choices if response else []
    target = _plain(choices[0].get("message")) if len(choices) == 1 else None
    if target is None or not (target.get("content") or target.get("tool_calls")):
        return None
    return replace(asked, target=target)


def _asked(session: Session, call: Call) -> Example | None:
    """The call's prompt; None where it was not kept or holds more than text and tool calls."""
    given = load_request(session, call) if call.input_hash is not None else None
    if not given or call.input_hash is None:
        return None
    request = dialect_of(call.endpoint).as_chat(given)
    messages = [_plain(message) for message in request.get("messages") or []]
    told = [message for message in messages if message is not None]
    if not told or len(told) < len(messages):
        return None
    return Example(
        input_hash=call.input_hash,
        call_id=call.id,
        upstream_id=call.upstream_id,
        messages=told,
        tools=storable(request.get("tools") or None),
        target={},
        response_format=request.get("response_format"),
        fingerprint=call.fingerprint,
    )


def _plain(message: object) -> dict[str, Any] | None:
    """A message with its text parts joined and without the fields that only transport needs; None for images, audio."""
    kept = plain(message) if isinstance(message, Mapping) else {}
    return storable(kept) if isinstance(kept.get("content"), str) else None


def _shape(examples: Sequence[Example]) -> dict[str, Any]:
    """What the requests have in common beside their messages; `mixed` where they differ."""
    formats = [example.response_format for example in examples]
    tools = [example.tools for example in examples]
    prints = Counter(example.fingerprint for example in examples if example.fingerprint)
    return {
        "fingerprint": prints.most_common(1)[0][0].hex() if prints else None,
        "response_format": formats[-1] if formats else None,
        "tools": tools[-1] if tools else None,
        "mixed": any(f != formats[-1] for f in formats) or any(t != tools[-1] for t in tools),
    }


def _row(version: DatasetVersion, position: int, split: str, example: Example) -> DatasetRow:
    return DatasetRow(
        project_id=version.project_id,
        version_id=version.id,
        position=position,
        split=split,
        input_hash=example.input_hash,
        call_id=example.call_id,
        upstream_id=example.upstream_id,
        messages=example.messages,
        tools=example.tools,
        target=example.target,
    )


def _require(task: Task, counts: Mapping[str, int], minimums: Minimums, refused: Sequence[Upstream]) -> None:
    """Refuses to freeze what nothing could be learned from, or shown with."""
    short = [
        f"{counts[split]} {split} (at least {least})"
        for split, least in vars(minimums).items()
        if counts[split] < least
    ]
    if not short:
        return
    left_out = ", ".join(f"{counts[why]} {why}" for why in ("duplicates", "untrainable", "forbidden", "student"))
    hint = "Send more calls of this task through the gateway."
    code = "dataset_too_small"
    if refused:
        code = "training_not_permitted"
        names = ", ".join(f"{u.name} (train_on_output: {u.train_on_output})" for u in refused)
        hint = f"Read the terms of {names}; if they allow it, set `train_on_output` to allowed on that upstream."
    raise StepdownError(
        409,
        code,
        f"Task {task.name!r} has too few examples: {', '.join(short)}. "
        f"Of {counts['calls']} calls were left out: {left_out}.",
        hint=hint,
    )
