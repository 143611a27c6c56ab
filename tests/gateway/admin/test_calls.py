"""The call list: pages without gaps, filters, bodies, the live stream, and one project's calls alone."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any
from uuid import UUID

import httpx
import pytest
from sqlalchemy import select, text
from sqlalchemy.orm import Session

from gateway.admin.repository.calls import CallFilter, conditions
from gateway.admin.routers import calls as router
from gateway.core.db import copy_rows, session_scope
from gateway.core.ids import new_id
from gateway.models import Call, Project, Task, Upstream
from tests import seeded


class Shop:
    def __init__(self, session: Session, name: str = "shop") -> None:
        self.project: Project = seeded.project(session, name)
        self.upstream: Upstream = seeded.upstream(session, self.project)
        self.task: Task = seeded.task(session, self.project)
        self.path = f"/api/projects/{self.project.id}/calls"

    def call(self, session: Session, text: str, **fields: Any) -> Call:
        return seeded.call(session, self.task, self.upstream, text, '{"a": 1}', preview=text, **fields)


@pytest.fixture
def shop(session: Session) -> Shop:
    return Shop(session)


async def texts(api: httpx.AsyncClient, path: str, **query: object) -> list[str]:
    response = await api.get(path, params=query)  # type: ignore[arg-type]
    assert response.status_code == 200, response.text
    return [call["preview"] for call in response.json()["calls"]]


async def test_pages_join_without_gap_or_repeat(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    for number in range(7):
        shop.call(session, f"call {number}")
    session.commit()
    found, before = [], None
    while True:
        page = (await api.get(shop.path, params={"limit": 3} | ({"before": before} if before else {}))).json()
        found += [call["preview"] for call in page["calls"]]
        before = page["next_before"]
        if before is None:
            break
    assert found == [f"call {number}" for number in reversed(range(7))]


async def test_filters_narrow(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    shop.call(session, "fine")
    shop.call(session, "limited", status=429, complete=True)
    shop.call(session, "cut", complete=False)
    shop.call(session, "small", served_by="student")
    shop.call(session, "no task").task_id = None
    shop.call(session, "100% sure_ly")
    session.commit()
    assert await texts(api, shop.path, status="error") == ["cut", "limited"]
    assert await texts(api, shop.path, status="429") == ["limited"]
    assert len(await texts(api, shop.path, status="ok")) == 4
    assert await texts(api, shop.path, served_by="student") == ["small"]
    assert await texts(api, shop.path, task="none") == ["no task"]
    assert len(await texts(api, shop.path, task=str(shop.task.id))) == 5
    assert await texts(api, shop.path, q="100% SURE_") == ["100% sure_ly"]
    assert await texts(api, shop.path, q="%") == ["100% sure_ly"], "% and _ are letters, not wildcards"
    assert (await api.get(shop.path, params={"status": "9xx"})).status_code == 400


@pytest.mark.parametrize(
    ("wanted", "found"),
    [
        ("parcel", True), ("PARC where", True), ("where parcel lost", False), ("arcel", False), ("jane shop", True),
        ("jane@shop.example", True), ("order_id", True), ("17", True), ("ORDER-ID:17", True), ("it's", True),
        ("包裹", True), ("裹在", True), ("裹包", False), ("<b>", True), ("!", False), ("?", True),
        ("' & | ! :* (", False),
        ("billing", True),
    ],
)  # fmt: skip
async def test_text_is_found_by_the_beginnings_of_its_words(
    api: httpx.AsyncClient, session: Session, shop: Shop, wanted: str, found: bool
) -> None:
    asked = "Where is my parcel? It's <b>late</b>, jane@shop.example wrote of order_id:17. 包裹在哪里"
    shop.call(session, asked, answer_preview='{"intent":"billing"}')
    shop.call(session, "something else")
    session.commit()
    assert await texts(api, shop.path, q=wanted) == ([asked] if found else [])


async def test_rare_words_and_failures_are_found_by_their_indexes(session: Session, shop: Shop) -> None:
    call = shop.call(session, "common words")
    session.flush()
    columns = {column.key: getattr(call, column.key) for column in Call.__table__.columns}
    copy_rows(session, Call, [columns | {"id": new_id()} for _ in range(3000)])
    shop.call(session, "a rare parcel", status=500)
    session.commit()
    with session_scope() as db:
        db.execute(text("ANALYZE call"))
        for wanted, index in (
            (CallFilter(text="parc"), "words"),
            (CallFilter(status="error"), "failed"),
            (CallFilter(status="500"), "failed"),
            (CallFilter(served_by="student"), "elsewhere"),
        ):
            query = select(Call.id).where(*conditions(shop.project.id, wanted)).order_by(Call.id.desc()).limit(50)
            shown = query.compile(db.get_bind(), compile_kwargs={"literal_binds": True})
            plan = db.connection().exec_driver_sql(f"EXPLAIN {shown}").scalars().all()
            assert f"ix_call_{index}" in parents(db, plan), plan


def parents(session: Session, plan: Sequence[str]) -> set[str]:
    """The call table's indexes whose partitions a plan names."""
    rows = session.execute(text("SELECT inhrelid::regclass::text, inhparent::regclass::text FROM pg_inherits"))
    return {parent for child, parent in rows if any(f" {child} " in f"{line} " for line in plan)}


async def test_one_call_with_its_bodies(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    call = shop.call(session, "Where is my parcel?", request={"temperature": 0.2}, tags={"channel": "mail"})
    session.commit()
    found = (await api.get(f"{shop.path}/{call.id}")).json()
    assert found["request"]["messages"][1] == {"role": "user", "content": "Where is my parcel?"}
    assert found["request"]["temperature"] == 0.2
    assert found["response"]["choices"][0]["message"]["content"] == '{"a": 1}'
    assert (found["task"]["name"], found["upstream"]["name"], found["tags"]) == (
        "Triage",
        "frontier",
        {"channel": "mail"},
    )


async def test_a_call_without_bodies(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    call = shop.call(session, "", items=None, response=None)
    call.request = None
    session.commit()
    found = (await api.get(f"{shop.path}/{call.id}")).json()
    assert (found["request"], found["response"]) == (None, None)


async def test_another_projects_calls_do_not_show(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    other = Shop(session, "other")
    secret = other.call(session, "theirs")
    session.commit()
    assert await texts(api, shop.path) == []
    assert (await api.get(f"{shop.path}/{secret.id}")).status_code == 404
    assert (await api.get(f"{other.path}/{secret.id}")).status_code == 200


class _Page:
    app = SimpleNamespace(state=SimpleNamespace(stopping=lambda: False))

    async def is_disconnected(self) -> bool:
        return False


async def test_the_stream_tells_new_calls_once_late_ones_too(
    api: httpx.AsyncClient, session: Session, shop: Shop, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(router, "POLL_S", 0.01)
    early = new_id()  # a slow call: it began before the others and is stored after them
    shop.call(session, "known")
    session.commit()
    stream = router._events(shop.project.id, _Page(), CallFilter())  # type: ignore[arg-type]
    assert await anext(stream) == ": connected\n\n"

    with session_scope() as later:
        shop.call(later, "new")
    assert await _next_call(stream) == "new"
    with session_scope() as later:
        shop.call(later, "late", id=early)
        shop.call(later, "newest")
    assert [await _next_call(stream), await _next_call(stream)] == ["late", "newest"]
    await stream.aclose()  # type: ignore[attr-defined]


async def _next_call(stream: Any) -> str:
    async with asyncio.timeout(20):
        async for event in stream:
            if event.startswith("event: call\n"):
                row = json.loads(event.split("data: ", 1)[1])
                assert UUID(row["id"])
                return str(row["preview"])
    raise AssertionError("the stream ended")


async def test_calls_of_one_trajectory(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    shop.call(session, "mine", trajectory="agent-1")
    shop.call(session, "another's", trajectory="agent-2")
    session.commit()
    assert await texts(api, shop.path, trajectory="agent-1") == ["mine"]


async def test_a_call_is_deleted_in_its_own_project_alone(api: httpx.AsyncClient, session: Session, shop: Shop) -> None:
    call, stranger = shop.call(session, "mine"), seeded.project(session, "stranger")
    session.commit()
    assert (await api.delete(f"/api/projects/{stranger.id}/calls/{call.id}")).status_code == 404
    assert await texts(api, shop.path) == ["mine"]
    assert (await api.delete(f"{shop.path}/{call.id}")).status_code == 204
    assert await texts(api, shop.path) == []
    assert (await api.delete(f"{shop.path}/{call.id}")).status_code == 404
