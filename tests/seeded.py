"""Rows that many tests begin with: a project, its upstream, a task, calls with their bodies, a run."""

from __future__ import annotations

import uuid
from typing import Any

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.secretbox import seal
from gateway.models import Price, Project, Run, Task, Upstream
from gateway.runs.schemas import JudgedBar, RunConfig, dump_bars


def project(session: Session, name: str = "default") -> Project:
    row = Project(name=name)
    session.add(row)
    session.flush()
    return row


def upstream(session: Session, owner: Project, name: str = "frontier", **fields: Any) -> Upstream:
    values: dict[str, Any] = {
        "kind": "openai",
        "base_url": "http://127.0.0.1:9/v1",
        "model": "frontier-1",
        "credential": seal("sk-test"),
        "train_on_output": "allowed",
        "judge_with": "allowed",
    }
    row = Upstream(project_id=owner.id, name=name, **(values | fields))
    session.add(row)
    session.flush()
    return row


def price(session: Session, of: Upstream, per_mtok: str = "1") -> Price:
    row = Price(
        project_id=of.project_id,
        upstream_id=of.id,
        input_per_mtok=per_mtok,
        cached_input_per_mtok=per_mtok,
        output_per_mtok=per_mtok,
        source="test",
        effective_from=now(),
    )
    session.add(row)
    session.flush()
    return row


def task(session: Session, owner: Project, slug: str = "triage", **fields: Any) -> Task:
    values = {"name": slug.title(), "state": "active", "fingerprint": uuid.uuid4().bytes * 2}
    row = Task(project_id=owner.id, slug=slug, **(values | fields))
    session.add(row)
    session.flush()
    return row


def run(session: Session, of: Task, judge: Upstream | None = None, **fields: Any) -> Run:
    values: dict[str, Any] = {
        "config": RunConfig().model_dump(mode="json"),
        "bars": dump_bars([JudgedBar()]),
        "base_model": "tiny",
        "judge_upstream_id": judge.id if judge else None,
    }
    row = Run(project_id=of.project_id, task_id=of.id, **(values | fields))
    session.add(row)
    session.flush()
    return row
