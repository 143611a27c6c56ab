"""Owns the phase `freeze`: the task's calls become an immutable dataset version, and the task has a rubric."""

from __future__ import annotations

import time
from uuid import UUID

from sqlalchemy.orm import Session

from distill.context import RunContext
from gateway.datasets import service as datasets
from gateway.datasets.schemas import DatasetRules, Minimums
from gateway.models import DatasetVersion, Run
from gateway.rubrics import service as rubrics
from gateway.runs import progress
from gateway.tasks.service import get_task
from rl.judge.rubric import default_rubric
from rl.precision import native_precision

SEEN = 200
"""Examples that a first rubric is made from."""


def run(ctx: RunContext) -> None:
    """One transaction: version, rubric and step appear together or not at all."""
    began = time.monotonic()

    def write(session: Session, row: Run) -> DatasetVersion:
        task, config = get_task(session, row.project_id, row.task_id), ctx.config
        version = datasets.freeze(
            session,
            task,
            DatasetRules(**config.split.model_dump()),
            Minimums(config.min_train, config.min_validation, config.min_test),
        )
        row.dataset_version_id, row.rubric_id = version.id, _rubric(session, row, version)
        counts = {name: float(count) for name, count in version.counts.items()}
        progress.finish_step(session, row, "freeze", 1, metrics=counts, seconds=time.monotonic() - began)
        return version

    version = ctx.commit(write)
    kept = ", ".join(f"{version.counts[split]} {split}" for split in ("train", "validation", "test"))
    out = ", ".join(f"{version.counts[why]} {why}" for why in ("duplicates", "untrainable", "forbidden", "student"))
    ctx.event("dataset", f"Dataset version {version.version}: {kept} examples; left out: {out}.")
    if native_precision() == "float32":
        ctx.event("precision", "This CPU has no bf16 instructions: the run computes in float32, which takes longer.")


def _rubric(session: Session, row: Run, version: DatasetVersion) -> UUID:
    """The task's rubric; its first is made from what the training examples look like."""
    known = rubrics.current(session, row.project_id, row.task_id)
    if known is not None:
        return known.id
    rows = datasets.train_rows(session, row.project_id, version.id)[:SEEN]
    guess = default_rubric([example.target.get("content") or "" for example in rows])
    return rubrics.add_version(session, row.project_id, row.task_id, dict(guess.to_dict())).id
