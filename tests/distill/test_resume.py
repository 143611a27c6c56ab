"""Going on after a stop gives what an unbroken run gives: weights, optimizer, order of the examples, loop."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any, Literal
from uuid import UUID

import pytest
from safetensors.torch import load_file
from sqlalchemy import select

from distill.context import RunContext
from distill.lab import Lab
from distill.outcomes import Stopped
from distill.phases import freeze, grpo, sft
from gateway.core.db import session_scope
from gateway.models import Run, RunStep, Task
from gateway.runs import lease
from gateway.runs.lease import Lease
from tests import seeded


def context(run_id: UUID) -> RunContext:
    """The run with its lease just taken, as a new trainer would have it."""
    with session_scope() as session:
        taken = lease.take(session, run_id, owner="test", seconds=-1)
        assert taken is not None
        assert taken.lease is not None
        return RunContext(taken.lease, lease.held(session, taken.lease))


def interrupted(phase: Callable[[], None], ctx: RunContext, after: int) -> None:
    """Runs a phase until `after` more of its steps are finished."""
    finish, left = ctx.finish_step, [after]

    def counting(*args: object, **kwargs: object) -> None:
        finish(*args, **kwargs)  # type: ignore[arg-type]  # handed on as they came
        left[0] -= 1
        if left[0] == 0:
            raise Stopped

    ctx.finish_step = counting  # type: ignore[method-assign]  # interrupted on purpose
    with pytest.raises(Stopped):
        phase()


def losses(run_id: UUID, phase: str) -> list[float]:
    with session_scope() as session:
        query = select(RunStep.metrics).where(RunStep.run_id == run_id, RunStep.phase == phase).order_by(RunStep.step)
        return [metrics["loss"] for metrics in session.scalars(query)]


def test_sft_in_pieces_is_sft_unbroken_and_the_rival_is_the_warm_start_carried_on(run_id: UUID) -> None:
    pieced, unbroken = context(run_id), context(_like(run_id, warm_start_steps=0, sft_all_steps=10))
    pieced.config.sft_all_steps = 10
    for ctx in (pieced, unbroken):
        freeze.run(ctx, Lab(ctx))
    for steps in (2, 1, 3):
        piece(pieced, "sft", steps)
    for steps in (2, 2):
        piece(pieced, "sft_all", steps)
    piece(unbroken, "sft_all", 10)
    found, wanted = losses(pieced.run_id, "sft_all"), losses(unbroken.run_id, "sft_all")
    assert len(wanted) == 10
    assert wanted[0] != wanted[-1]
    assert found == pytest.approx(wanted, rel=1e-5)
    assert losses(pieced.run_id, "sft") == found[:6]
    known = [ctx.saved("sft_all").memory["probability"] for ctx in (pieced, unbroken)]
    assert known[0] == pytest.approx(known[1], abs=1e-3)
    assert len(known[0]) > pieced.config.sft_batch
    first, second = (load_file(_last(ctx, "sft_all") / "adapter_model.safetensors") for ctx in (pieced, unbroken))
    assert max(float((first[name] - second[name]).abs().max()) for name in first) < 1e-5


def _like(run_id: UUID, **config: int) -> UUID:
    """Another run of the same task, with some settings changed."""
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        return seeded.run(
            session,
            session.get_one(Task, run.task_id),
            judge_upstream_id=run.judge_upstream_id,
            config=run.config | config,
        ).id


def piece(ctx: RunContext, phase: Literal["sft", "sft_all"], steps: int) -> None:
    """So many steps of a phase in a trainer of its own, as after a restart."""
    lab = Lab(ctx)
    finish = ctx.finish_step
    interrupted(lambda: sft.run(ctx, lab, phase), ctx, steps)
    ctx.finish_step = finish  # type: ignore[method-assign]
    lab.close()


def _last(ctx: RunContext, phase: str) -> Path:
    return sorted((ctx.folder / phase).iterdir())[-1]


def test_grpo_goes_on_with_its_loop_and_optimizer(run_id: UUID) -> None:
    ctx = context(run_id)
    freeze.run(ctx, Lab(ctx))
    lab = Lab(ctx)
    sft.run(ctx, lab, "sft")
    interrupted(lambda: grpo.run(ctx, lab), ctx, 2)
    lab.close()
    saved = json.loads((_last(ctx, "grpo") / "memory.json").read_text())
    assert saved["loop"]["watch"]["steps"] == 2
    assert len(_visited(saved)) >= 4
    assert saved["loop"]["curriculum"]["seen"].keys() > _visited(saved), "the warm start's examples are known too"

    later = context(run_id)
    lab = Lab(later)
    grpo.run(later, lab)
    lab.close()
    after = json.loads((_last(later, "grpo") / "memory.json").read_text())
    assert after["loop"]["watch"]["steps"] == 4
    assert _visited(after) > _visited(saved)
    state = json.loads((_last(later, "grpo") / "trainer.json").read_text())
    trained = sum("loss" in metrics for metrics in _metrics(run_id))
    assert state["steps"] == trained


def _visited(memory: dict[str, Any]) -> set[str]:
    """Keys of the prompts that GRPO has sampled."""
    return {key for key, (_, _, step) in memory["loop"]["curriculum"]["seen"].items() if step > 0}


def _metrics(run_id: UUID) -> list[dict[str, float]]:
    with session_scope() as session:
        return list(session.scalars(select(RunStep.metrics).where(RunStep.run_id == run_id, RunStep.phase == "grpo")))


def test_a_state_without_its_row_is_not_believed(run_id: UUID) -> None:
    """Killed between saving and committing: the folder is there, the step is not, and is done again."""
    ctx = context(run_id)
    freeze.run(ctx, Lab(ctx))
    lab = Lab(ctx)
    interrupted(lambda: sft.run(ctx, lab, "sft"), ctx, 2)
    orphan = ctx.folder / "sft" / "step-00003-epoch-1"
    orphan.mkdir()
    (orphan / "adapter_model.safetensors").write_bytes(b"half")
    later = context(run_id)
    assert later.saved("sft").step == 2
    lab = Lab(later)
    sft.run(later, lab, "sft")
    lab.close()
    assert not orphan.exists()
    assert isinstance(later.lease, Lease)
    assert later.saved("sft").folder == ctx.folder / "sft" / "step-00006-epoch-2"
