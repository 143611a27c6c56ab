"""Owns the synthetic calls of the bench: what traffic of twenty tasks looks like in the call table."""

from __future__ import annotations

import random
from collections.abc import Iterator
from datetime import datetime, timedelta
from decimal import Decimal
from itertools import accumulate
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.ids import new_id
from gateway.models import Project, Task, Upstream

SPAN = timedelta(days=25)
TASKS = 20
WORDS = [
    a + b + c for a in "bdfgklmnprstvz" for b in ("a", "en", "il", "or", "u") for c in ("t", "ra", "nd", "ko", "s")
]
_ZIPF = list(accumulate(1 / rank for rank in range(1, len(WORDS) + 1)))


def world(session: Session) -> tuple[Project, Upstream, list[Task]]:
    """A project with an upstream and its tasks."""
    project = Project(id=new_id(), name="bench")
    session.add(project)
    session.flush()
    upstream = Upstream(
        id=new_id(), project_id=project.id, name="frontier", kind="openai", base_url="http://127.0.0.1:1/v1",
        train_on_output="allowed", judge_with="allowed",
    )  # fmt: skip
    tasks = [
        Task(
            id=new_id(), project_id=project.id, slug=f"task-{n}", name=f"task {n}", fingerprint=bytes([n]) * 32,
            system_preview="",
        )
        for n in range(TASKS)
    ]  # fmt: skip
    session.add_all([upstream, *tasks])
    session.flush()
    return project, upstream, tasks


def synthetic(count: int, project: Project, upstream: Upstream, tasks: list[Task], seed: int = 1) -> Iterator[Any]:
    """Rows of the call table, oldest first, spread over the last 25 days. Tasks and words are Zipf-distributed, one
    call in a hundred failed, one in ten was a student's, a third belongs to a conversation of five."""
    draw = random.Random(seed)
    began = now() - SPAN
    task_weights = list(accumulate(1 / rank for rank in range(1, len(tasks) + 1)))
    for number in range(count):
        at = began + SPAN * (number / count)
        failed = draw.random() < 0.01
        words = draw.choices(WORDS, cum_weights=_ZIPF, k=14)
        served_by = "student" if draw.random() < 0.1 else "gateway" if failed and draw.random() < 0.1 else "upstream"
        yield {
            "id": _id_at(at, draw), "project_id": project.id, "key_id": None,
            "task_id": draw.choices(tasks, cum_weights=task_weights)[0].id, "received_at": at,
            "endpoint": "chat.completions", "alias": "gpt-4o", "served_by": served_by, "upstream_id": upstream.id,
            "student_id": None, "route_revision_id": None, "fallback_reason": None, "streamed": number % 3 == 0,
            "status": draw.choice((429, 500, 502, 400)) if failed else 200, "complete": True, "trainable": not failed,
            "finish_reason": "stop", "error": None, "latency_ms": 800.0, "ttfb_ms": 300.0, "overhead_ms": 0.3,
            "prompt_tokens": 300, "cached_tokens": 0, "completion_tokens": 40, "reasoning_tokens": 0,
            "cost": Decimal("0.00115"), "fingerprint": draw.randbytes(32), "input_hash": draw.randbytes(32),
            "preview": " ".join(words[:10]), "answer_preview": " ".join(words[10:]), "tags": {},
            "trajectory": f"conversation-{number // 15}" if number % 3 == 0 else None, "request": {"model": "gpt-4o"},
            "parent_id": None, "shared": None, "items": draw.randbytes(32), "response": draw.randbytes(120),
        }  # fmt: skip


def _id_at(moment: datetime, draw: random.Random) -> UUID:
    """A UUIDv7 of that millisecond (RFC 9562, section 5.7)."""
    milliseconds = int(moment.timestamp() * 1000)
    return UUID(int=milliseconds << 80 | 7 << 76 | draw.getrandbits(12) << 64 | 2 << 62 | draw.getrandbits(62))
