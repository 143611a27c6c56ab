"""Money and volume: sums exactly the ledger's, days and servers apart, another project's never in them."""

from __future__ import annotations

from datetime import timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID, uuid4

import httpx
from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.models import Call, LedgerEntry, Project
from tests import seeded


def charge(session: Session, project: Project, amount: str, **fields: Any) -> None:
    values: dict[str, Any] = {"source_id": uuid4(), "kind": "call", "price": {}, "usage": {}, "created_at": now()}
    session.add(LedgerEntry(project_id=project.id, amount=Decimal(amount), **(values | fields)))


def paid(session: Session, project: Project, call: Call, amount: str) -> None:
    charge(session, project, amount, source_id=call.id, call_id=call.id)


def at(days_ago: int) -> dict[str, Any]:
    moment = now() - timedelta(days=days_ago)
    return {"received_at": moment, "id": UUID(int=int(moment.timestamp() * 1000) << 80 | 7 << 76 | uuid4().int >> 80)}


async def test_totals_days_and_servers(api: httpx.AsyncClient, session: Session) -> None:
    project = seeded.project(session)
    upstream, task = seeded.upstream(session, project), None
    task = seeded.task(session, project)
    for amount, latency, fields in (
        ("0.1000000001", 100.0, at(0)),
        ("0.2", 200.0, at(0) | {"alias": "mini"}),
        ("0.3", 300.0, at(1)),
        ("0", 9000.0, at(1) | {"status": 500}),
        ("7", 100.0, at(20)),
    ):
        call = seeded.call(session, task, upstream, "x", "y", latency_ms=latency, **fields)
        paid(session, project, call, amount)
    charge(session, project, "0.05", kind="judge")
    charge(session, project, "0.5", call_id=None)
    other = seeded.project(session, "other")
    charge(session, other, "99", kind="judge")
    session.commit()

    usage = (await api.get(f"/api/projects/{project.id}/usage", params={"days": 7})).json()
    totals = usage["totals"]
    assert (totals["calls"], totals["failed"], totals["spend"]) == (4, 1, "0.6000000001")
    assert (totals["p50_ms"], usage["judge_spend"], usage["uncaptured_spend"]) == (200.0, "0.05", "0.5")
    assert [(day["calls"], day["spend"]) for day in usage["by_day"]] == [(2, "0.3"), (2, "0.3000000001")]
    assert {line["alias"]: line["calls"] for line in usage["by_alias"]} == {"frontier-1": 3, "mini": 1}
    assert [(line["served_by"], line["name"], line["calls"]) for line in usage["by_served_by"]] == [
        ("upstream", "frontier", 4)
    ]


async def test_an_empty_project_has_zeros(api: httpx.AsyncClient, session: Session) -> None:
    project = seeded.project(session)
    session.commit()
    usage = (await api.get(f"/api/projects/{project.id}/usage")).json()
    assert (usage["totals"]["calls"], usage["totals"]["spend"], usage["totals"]["p50_ms"]) == (0, "0", None)
    overview = (await api.get(f"/api/projects/{project.id}/overview")).json()
    assert not any(overview["setup"].values())


async def test_the_overview_tells_how_far_one_is(api: httpx.AsyncClient, session: Session) -> None:
    project = seeded.project(session)
    upstream = seeded.upstream(session, project)
    task = seeded.task(session, project)
    seeded.call(session, task, upstream, "x", "y", latency_ms=5.0)
    seeded.call(session, task, upstream, "x", "y", served_by="student", latency_ms=3.0)
    session.commit()
    overview = (await api.get(f"/api/projects/{project.id}/overview")).json()
    done = {name for name, is_done in overview["setup"].items() if is_done}
    assert done == {"upstream", "call", "task"}
    assert (overview["calls_total"], overview["student_calls"], overview["last_day"]["calls"]) == (2, 1, 2)
    assert sum(hour["upstream"] + hour["student"] for hour in overview["hours"]) == 2
