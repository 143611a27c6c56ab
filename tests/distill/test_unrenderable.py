"""What the base model's chat template cannot carry: a whole task is refused at once, single examples are left out."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from distill.lab import Lab
from distill.outcomes import Hopeless
from distill.phases import freeze
from gateway.core.db import session_scope
from gateway.models import Call, DatasetVersion, Run, RunEvent, Task, Upstream
from tests import seeded
from tests.distill.test_resume import context

TOOLS = {"tools": [{"type": "function", "function": {"name": "look_up", "parameters": {}}}]}


@contextmanager
def _task(run_id: UUID) -> Iterator[tuple[Session, Task, Upstream]]:
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        yield session, session.get_one(Task, run.task_id), session.scalars(select(Upstream)).one()


def test_a_tool_task_is_refused_before_anything_is_written(run_id: UUID) -> None:
    with _task(run_id) as (session, task, teacher):
        session.query(Call).delete()
        for number in range(160):
            seeded.call(session, task, teacher, f"where is {number}?", "there", request=TOOLS)
    ctx = context(run_id)
    with pytest.raises(Hopeless, match=r"tiny cannot learn this task: .*drops the tool 'look_up'.*STEPDOWN_BASE_MODEL"):
        freeze.run(ctx, Lab(ctx))
    with session_scope() as session:
        assert session.scalars(select(DatasetVersion)).all() == []
        assert session.get_one(Run, run_id).dataset_version_id is None


@pytest.mark.parametrize("answer", ["a<|end|>b", "<|user|>"])
def test_an_example_that_cannot_be_rendered_is_left_out(run_id: UUID, answer: Any) -> None:
    with _task(run_id) as (session, task, teacher):
        for number in range(1000, 1020):
            seeded.call(session, task, teacher, f"ticket {number}", answer, system="a or b?")
    ctx = context(run_id)
    lab = Lab(ctx)
    freeze.run(ctx, lab)
    texts = {row.target["content"] for row in lab.train_rows()}
    assert texts == {"a", "b"}
    with session_scope() as session:
        told = session.scalars(select(RunEvent.message).where(RunEvent.kind == "unrenderable")).one()
    assert "examples are left out; the first because the chat template makes" in told
