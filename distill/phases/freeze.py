"""Owns the phase `freeze`: the task's calls become an immutable dataset version, and the task has a rubric.

A task that the base model's chat template cannot carry (tools, above all) is refused here, before anything is written.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.orm import Session

from distill.context import RunContext
from distill.lab import Lab
from distill.outcomes import Hopeless
from gateway.datasets import service as datasets
from gateway.datasets.schemas import DatasetRules, Minimums
from gateway.models import DatasetRow, DatasetVersion, Run
from gateway.rubrics import service as rubrics
from gateway.runs import progress
from gateway.tasks.service import get_task
from rl.judge.rubric import default_rubric
from rl.precision import native_precision
from rl.render import Renderer

SEEN = 200
"""Examples that a first rubric is made from."""


def run(ctx: RunContext, lab: Lab) -> None:
    """One transaction: version, rubric and step appear together or not at all. Raises Hopeless, StepdownError."""
    began = time.monotonic()
    renderer = lab.renderer  # loaded before the transaction

    def write(session: Session, row: Run) -> DatasetVersion:
        task, config = get_task(session, row.project_id, row.task_id), ctx.config
        version = datasets.freeze(
            session,
            task,
            DatasetRules(**config.split.model_dump()),
            Minimums(config.min_train, config.min_validation, config.min_test),
        )
        seen = datasets.train_rows(session, row.project_id, version.id)[:SEEN]
        _require_renderable(renderer, seen, row.base_model)
        row.dataset_version_id, row.rubric_id = version.id, _rubric(session, row, seen)
        counts = {name: float(count) for name, count in version.counts.items()}
        progress.finish_step(session, row, "freeze", 1, metrics=counts, seconds=time.monotonic() - began)
        return version

    version = ctx.commit(write)
    kept = ", ".join(f"{version.counts[split]} {split}" for split in ("train", "validation", "test"))
    out = ", ".join(f"{version.counts[why]} {why}" for why in ("duplicates", "untrainable", "forbidden", "student"))
    unlabelled = version.counts.get("practice", 0)
    more = f"; {unlabelled} further prompts to practise on" if unlabelled else ""
    ctx.event("dataset", f"Dataset version {version.version}: {kept} examples{more}; left out: {out}.")
    if native_precision() == "float32":
        ctx.event("precision", "This CPU has no bf16 instructions: the run computes in float32, which takes longer.")


def _require_renderable(renderer: Renderer, rows: Sequence[DatasetRow], base_model: str) -> None:
    """Refuses a task of which the base model's template can show nothing; single examples are left out later."""
    reasons = [renderer.refusal(row.messages, row.tools) for row in rows]
    if reasons and all(reasons):
        raise Hopeless(
            f"{base_model} cannot learn this task: {reasons[0]}. Choose a base model whose chat template can carry it "
            "(STEPDOWN_BASE_MODEL), then start another run."
        )


def _rubric(session: Session, row: Run, rows: Sequence[DatasetRow]) -> UUID:
    """The task's rubric; its first is made from what the training examples look like."""
    known = rubrics.current(session, row.project_id, row.task_id)
    if known is not None:
        return known.id
    guess = default_rubric([example.target.get("content") or "" for example in rows])
    return rubrics.add_version(session, row.project_id, row.task_id, dict(guess.to_dict())).id
