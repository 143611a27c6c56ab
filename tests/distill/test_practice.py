"""What GRPO may practise on: every prompt of the train side, with an answer or without, and none of the others."""

from __future__ import annotations

from uuid import UUID

import pytest
from sqlalchemy import select

from distill.lab import Lab
from distill.phases import freeze, grpo
from gateway.core.db import session_scope
from gateway.models import DatasetRow, Run, Task
from rl.types import Prompt
from tests import seeded
from tests.distill.test_resume import context


def prompts_of(run_id: UUID, *, unlabelled: bool) -> tuple[list[Prompt], dict[str, DatasetRow]]:
    """The prompts of GRPO's loop, and every row of the dataset by its id."""
    ctx = context(run_id)
    ctx.config.grpo_unlabelled = unlabelled
    lab = Lab(ctx)
    freeze.run(ctx, lab)
    loop = grpo._loop(ctx, lab, lab.new_trainer())
    lab.close()
    with session_scope() as session:
        rows = {str(row.id): row for row in session.scalars(select(DatasetRow))}
    return list(loop._prompts.values()), rows


@pytest.mark.parametrize("unlabelled", [True, False])
def test_validation_and_test_prompts_are_never_sampled(run_id: UUID, unlabelled: bool) -> None:
    with session_scope() as session:
        task = session.get_one(Task, session.get_one(Run, run_id).task_id)
        for number in range(1000, 1060):
            seeded.call(session, task, None, f"ticket {number}", "a", system="a or b?", complete=False, trainable=False)
    prompts, rows = prompts_of(run_id, unlabelled=unlabelled)
    practised = {prompt.key for prompt in prompts}
    wanted = {"train", "practice"} if unlabelled else {"train"}
    assert {rows[key].split for key in practised} == wanted
    assert practised == {key for key, row in rows.items() if row.split in wanted}, "all of them"
    seen = {rows[key].input_hash for key in practised}
    assert not seen & {row.input_hash for row in rows.values() if row.split in ("validation", "test")}
    assert {prompt.anchor is None for prompt in prompts if rows[prompt.key].split == "practice"} <= {True}
    assert all(prompt.anchor in ("a", "b") for prompt in prompts if rows[prompt.key].split == "train")
