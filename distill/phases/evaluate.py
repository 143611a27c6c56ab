"""Owns the phase `evaluate`: every candidate answers the test split once, is compared with the teacher, and the
candidate that validation chose is exported.

The choice never looks at test, and test is opened here alone. Each candidate is one step: a restart goes on with the
next. Must not decide whether the evidence suffices: the gate does, on the bars that were declared before.
"""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from distill.answers import answer, references, same
from distill.context import RunContext
from distill.judging import judged_pairs, validate
from distill.lab import Lab
from gateway.core.settings import settings
from gateway.datasets import service as datasets
from gateway.evaluations import service as evaluations
from gateway.evaluations.service import OutputRecord
from gateway.models import DatasetRow, Run
from gateway.runs import progress
from gateway.runs.schemas import CANDIDATES
from gateway.tasks.fingerprint import conversation_hash
from rl.trainer import Trainer

Candidates = Mapping[str, tuple[UUID | None, Path | None]]


@dataclass(frozen=True)
class _Measured:
    """What one set of weights answered to the test split, and what that says."""

    outputs: list[OutputRecord]
    details: dict[str, Any]
    tokens_per_s: float


def run(ctx: RunContext, lab: Lab) -> None:
    """The base model first, then each phase's best checkpoint; then the winner by validation."""
    found = _candidates(ctx)
    finished = ctx.last_step("evaluate")
    trainer = lab.new_trainer()
    if finished < len(found):
        rows = _test_rows(ctx)
        measured: dict[Path | None, _Measured] = {}
        for step, (name, (checkpoint, folder)) in enumerate(found.items(), start=1):
            if step <= finished:
                continue
            began = time.monotonic()
            if folder not in measured:  # the rival may have found nothing better than the warm start's checkpoint
                measured[folder] = _measure(lab, trainer, folder, rows)
            _record(ctx, measured[folder], step=step, name=name, checkpoint=checkpoint, began=began)
    _choose(ctx, lab, trainer, found)


def _candidates(ctx: RunContext) -> Candidates:
    """What was trained, by name, in a fixed order; the base model has no checkpoint."""
    found: dict[str, tuple[UUID | None, Path | None]] = {"base": (None, None)}
    for phase in ("sft", "sft_all", "grpo"):
        best = ctx.best(phase)
        if best is not None:
            found[phase] = (best[0], best[1])
    return {name: found[name] for name in CANDIDATES if name in found}


def _test_rows(ctx: RunContext) -> Sequence[DatasetRow]:
    """The test split in the order of its hashes: an order that neither time nor anybody has chosen."""

    def write(session: Session, run: Run) -> Sequence[DatasetRow]:
        assert run.dataset_version_id is not None, "freeze has set it"
        evaluations.begin(session, run)
        return datasets.open_test(session, run.project_id, run.dataset_version_id)

    return sorted(ctx.commit(write), key=lambda row: row.input_hash)


def _measure(lab: Lab, trainer: Trainer, folder: Path | None, rows: Sequence[DatasetRow]) -> _Measured:
    """One set of weights: answers, exact agreement, blind pairs against the teacher; if trained also on validation."""
    if folder is not None:
        trainer.load(folder)
    lab.show(trainer)
    expected = references(lab.renderer, rows)
    answers = answer(lab, rows)
    first = _first_of_conversation(rows)
    pairs = judged_pairs(lab, rows, answers.texts, expected, wanted=first)
    outputs = [
        OutputRecord(row.id, text, same(text, reference), pair.score if pair else None, pair.reason if pair else None)
        for row, text, reference, pair in zip(rows, answers.texts, expected, pairs, strict=True)
    ]
    details: dict[str, Any] = {
        "validation": validate(lab, lab.whole_validation) if folder else None,
        "dropped": sum(pair is None for pair, is_first in zip(pairs, first, strict=True) if is_first),
        "engine": {
            "seconds": answers.seconds,
            "tokens": answers.tokens,
            "prompts": len(rows),
            "max_new_tokens": lab.max_new_tokens,
        },
    }
    return _Measured(outputs, details, answers.tokens / max(answers.seconds, 1e-9))


def _record(
    ctx: RunContext, measured: _Measured, *, step: int, name: str, checkpoint: UUID | None, began: float
) -> None:
    details = measured.details | {"checkpoint_id": str(checkpoint) if checkpoint else None}

    def write(session: Session, run: Run) -> dict[str, Any]:
        entry = evaluations.record_candidate(session, evaluations.begin(session, run), name, measured.outputs, details)
        metrics = {
            f"{name}_agreement": entry["agreement"]["value"],
            f"{name}_win_rate": entry["judged"]["win_rate"] or 0.0,
            f"{name}_tokens_per_s": measured.tokens_per_s,
        }
        progress.finish_step(session, run, "evaluate", step, metrics=metrics, seconds=time.monotonic() - began)
        return entry

    entry = ctx.commit(write)
    low, high, n = entry["judged"]["low"], entry["judged"]["high"], len(measured.outputs)
    ctx.event(
        "evaluated",
        f"{name}: agrees with the teacher on {entry['agreement']['value']:.1%} of {n} test prompts; "
        f"judged against it {entry['judged']['win_rate'] or 0:.3f} [{low:.3f}, {high:.3f}].",
    )


def _first_of_conversation(rows: Sequence[DatasetRow]) -> list[bool]:
    """Marks one row of each conversation: turns of one conversation are not independent evidence."""
    seen: set[bytes] = set()
    marks = []
    for row in rows:
        key = conversation_hash({"messages": row.messages})
        marks.append(key not in seen)
        seen.add(key)
    return marks


def _rank(validation: Mapping[str, float]) -> tuple[float, float]:
    return validation["judged"], validation["agreement"]


def _choose(ctx: RunContext, lab: Lab, trainer: Trainer, found: Candidates) -> None:
    """The trained candidate with the best judged score on validation, its weights exported for an engine."""
    measured = ctx.commit(lambda session, run: evaluations.begin(session, run).candidates)
    trained = [name for name in measured if measured[name]["validation"]]
    winner = max(trained, key=lambda name: _rank(measured[name]["validation"]), default="base")
    folder = found[winner][1]
    weights = f"students/{ctx.run_id}-{winner}"
    if folder is not None:
        trainer.load(folder)
    trainer.export_merged(settings().models_dir / weights)
    lab.renderer.declare_ends(settings().models_dir / weights)
    ctx.commit(
        lambda session, run: evaluations.finish(session, evaluations.begin(session, run), winner, {"weights": weights})
    )
    ctx.event("winner", f"Validation chose {winner}; its merged weights are in models/{weights}.")
