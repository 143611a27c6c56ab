"""A whole project as it looks after a week: traffic, tasks, runs, evidence, a student on its way. Numbers are made up.

For the browser test and for working on the dashboard (`python -m tests.e2e.dashboard`). `build` is deterministic but
for the clock.
"""

from __future__ import annotations

import json
import math
import random
import uuid
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from decimal import Decimal

from sqlalchemy.orm import Session

from gateway.capture.partitions import month_of
from gateway.capture.repository import ensure_partitions
from gateway.core.clock import now
from gateway.keys.service import create_key
from gateway.models import Call, LedgerEntry, Project, Route, Rubric, Student, Task, Upstream
from gateway.routing.service import create_route
from tests import seeded
from tests.e2e.world_runs import finished_run, running_run

SYSTEM = (
    "You sort support tickets for Northwind. Answer in JSON with category, urgency, product and needs_human. "
    "Today is 2026-11-30."
)
MODERATION = "You are a content moderator. Say allow or block, and why in one sentence."
PEOPLE = ("Amélie", "Tomasz", "Priya", "Søren", "Mehmet", "Lucía", "Ngozi", "Yuki")
COMPLAINTS = (
    ("my card was charged twice this month, order {n}", "billing_duplicate", "high", "payments"),
    ("the app crashes whenever i open settings on android {n}", "app_crash", "normal", "mobile"),
    ("can u tell me when parcel {n} arives? its been 9 days", "delivery_delay", "normal", "shipping"),
    ("Please cancel my subscription, I asked {n} times already.", "cancellation", "high", "account"),
    ("I cannot log in since the update, code {n} never arrives", "login", "high", "account"),
    ("How do I export invoices for {n}?", "how_to", "low", "billing"),
    ("Refund for order {n} still missing, this is the 3rd mail!!", "refund", "high", "payments"),
    ("Do you ship to Iceland? (asking for {n} people)", "presales", "low", "shipping"),
)


@dataclass
class World:
    """Ids that tests ask for."""

    project: Project
    upstream: Upstream
    task: Task
    route: Route
    student: Student
    finished_run: uuid.UUID
    running_run: uuid.UUID
    key: str
    calls: list[Call] = field(default_factory=list)


def build(session: Session, *, calls: int = 420) -> World:
    """Adds the world to the session's transaction."""
    dice = random.Random(7)
    project = seeded.project(session, "Northwind support")
    upstream = seeded.upstream(
        session,
        project,
        "openai",
        base_url="http://127.0.0.1:9/v1",
        model="gpt-5.2",
        terms_source="Order form of 2026-03-01, section 4",
    )
    seeded.upstream(session, project, "anthropic", kind="litellm", base_url=None, model="claude-opus-5",
                    train_on_output="forbidden", judge_with="allowed")  # fmt: skip
    price = seeded.price(session, upstream, "2.5")
    _, key = create_key(session, project.id, "support-app")
    create_key(session, project.id, "staging")
    task = seeded.task(session, project, "support-triage", name="Support tickets for Northwind", system_preview=SYSTEM)
    other = seeded.task(session, project, "content-moderator", name="Content moderator", state="suggested",
                        system_preview=MODERATION)  # fmt: skip
    _rubric(session, task)
    create_route(session, project.id, alias="gpt-5.2", upstream_id=upstream.id)
    route, _ = create_route(session, project.id, alias="gpt-5.2", upstream_id=upstream.id, task_id=task.id)
    student, run_id = finished_run(session, task, upstream, dice)
    world = World(project, upstream, task, route, student, run_id, running_run(session, task, upstream, dice), key)
    moments = sorted(_moment(dice) for _ in range(calls))
    for month in {month_of(_id_at(moment)) for moment in moments}:
        ensure_partitions(session, {month})
    for moment in moments:
        by_student = moment > now() - timedelta(hours=20) and dice.random() < 0.4
        row = call_at(session, world, other, moment, by_student=by_student, dice=dice)
        world.calls.append(row)
        session.add(
            LedgerEntry(project_id=project.id, source_id=row.id, kind="call", call_id=row.id, upstream_id=upstream.id,
                        amount=row.cost or Decimal(0), price=_frozen(price), usage={}, created_at=moment)
        )  # fmt: skip
    session.add(
        LedgerEntry(project_id=project.id, source_id=uuid.uuid4(), kind="judge", run_id=run_id, amount=Decimal("1.274"),
                    price={}, usage={}, created_at=now() - timedelta(days=1))
    )  # fmt: skip
    session.flush()
    return world


def call_at(
    session: Session, world: World, other: Task, moment: datetime, *, by_student: bool, dice: random.Random
) -> Call:
    """One call of that moment, now and then a failed one or one of the other task."""
    text, category, urgency, product = dice.choice(COMPLAINTS)
    text = f"{dice.choice(('Hi,', 'Hello', 'hey'))} {text.format(n=dice.randrange(1000, 9999))} — {dice.choice(PEOPLE)}"
    answer = json.dumps(
        {"category": category, "urgency": urgency, "product": product, "needs_human": urgency == "high"}
    )
    failed = dice.random() < 0.03 and not by_student
    moderating = dice.random() < 0.15 and not by_student
    latency = dice.lognormvariate(math.log(190 if by_student else 1150), 0.35)
    prompt, completion = dice.randrange(90, 160), dice.randrange(26, 34)
    return seeded.call(
        session,
        other if moderating else world.task,
        world.upstream,
        text,
        "allow: an ordinary request." if moderating else answer,
        system=MODERATION if moderating else SYSTEM,
        id=_id_at(moment),
        alias="gpt-5.2",
        received_at=moment,
        served_by="student" if by_student else "upstream",
        student_id=world.student.id if by_student else None,
        streamed=dice.random() < 0.4,
        status=dice.choice((429, 500, 529)) if failed else 200,
        error="Rate limit reached for gpt-5.2" if failed else None,
        complete=not failed,
        trainable=not failed and not by_student,
        finish_reason=None if failed else "stop",
        latency_ms=latency,
        ttfb_ms=latency * 0.4,
        overhead_ms=dice.uniform(0.2, 0.6),
        prompt_tokens=prompt,
        completion_tokens=0 if failed else completion,
        cost=Decimal(0) if failed else _cost(prompt, completion, by_student),
        preview=text,
        answer_preview="" if failed else answer,
        tags={"channel": dice.choice(("mail", "chat"))},
    )


def _cost(prompt: int, completion: int, by_student: bool) -> Decimal:
    return (prompt * Decimal("0.05") + completion * Decimal("0.1") if by_student else prompt * Decimal("2.5")
            + completion * 10) / 1_000_000  # fmt: skip


def _moment(dice: random.Random) -> datetime:
    """A moment of the last week; two thirds in the last day, more by day than by night."""
    days = dice.random() if dice.random() < 0.66 else dice.uniform(1, 7)
    return now() - timedelta(days=days) if dice.random() < 0.9 else now() - timedelta(hours=dice.uniform(0, 5))


def _id_at(moment: datetime) -> uuid.UUID:
    milliseconds = int(moment.timestamp() * 1000)
    return uuid.UUID(int=milliseconds << 80 | 7 << 76 | 2 << 62 | random.getrandbits(62))


def _frozen(price: object) -> dict[str, str]:
    return {"input_per_mtok": "2.5", "cached_input_per_mtok": "1.25", "output_per_mtok": "10"}


def _rubric(session: Session, task: Task) -> None:
    session.add(
        Rubric(
            project_id=task.project_id,
            task_id=task.id,
            version=1,
            criteria=[
                {
                    "name": "category",
                    "question": "Is the category the one that a support lead would choose?",
                    "weight": 2.0,
                },
                {"name": "fields", "question": "Are urgency, product and needs_human right?", "weight": 1.0},
            ],
            vetoes=[{"name": "invented", "question": "Does the answer state something that the ticket does not say?"}],
            checks=[{"kind": "json"}],
        )
    )
    session.flush()
