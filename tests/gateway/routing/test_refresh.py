"""The snapshot: what the database says, within its period; what it last said while it is away."""

from __future__ import annotations

import pytest
from sqlalchemy import select, update

from gateway.core.db import async_engine, dispose_async, session_scope
from gateway.core.settings import settings
from gateway.keys.service import change_key
from gateway.models import Route, Upstream
from gateway.routing.refresh import SnapshotHolder
from gateway.routing.repository import upstream_spec
from gateway.routing.service import change_fallbacks
from tests.gateway.world import UPSTREAM_KEY, add_student, seed


@pytest.fixture(autouse=True)
async def closed():
    yield
    await dispose_async()


async def test_rows_become_a_snapshot(database: str) -> None:
    rows = seed("http://u/v1", name="one")
    add_student(rows, "http://engine/v1", share=0.5, stage="canary")
    other = seed("http://v/v1", name="two")
    holder = SnapshotHolder(60)
    assert await holder.refresh()
    snapshot = holder.current
    assert snapshot is not None
    key, theirs = snapshot.key(rows.key), snapshot.key(other.key)
    assert key is not None
    assert theirs is not None
    assert (key.id, key.capture, key.project.id) == (rows.key_id, "full", rows.project_id)
    assert theirs.project.id == other.project_id
    assert snapshot.key(rows.key[:-1] + "x") is None
    (task_id,) = key.project.tasks_by_slug.values()
    route = key.project.routes["gpt-4o", task_id]
    assert route.upstream.spec.api_key == UPSTREAM_KEY
    assert UPSTREAM_KEY not in repr(snapshot)
    revision = route.revision
    assert revision is not None
    assert (revision.number, revision.share, revision.stage) == (7, 0.5, "canary")
    assert revision.student is not None
    assert revision.student.base_url == "http://engine/v1"
    assert key.project.routes["gpt-4o", None].revision is None
    assert list(theirs.project.routes) == [("gpt-4o", None)]


async def test_changes_are_seen_and_nothing_is_rebuilt_without_one(database: str) -> None:
    seed("http://u/v1")
    holder = SnapshotHolder(60)
    await holder.refresh()
    first = holder.current
    await holder.refresh()
    assert holder.current is first
    with session_scope() as session:
        session.execute(update(Route).values(alias="new-name"))
    await holder.refresh()
    assert holder.current is not None
    (project,) = holder.current.projects.values()
    assert project.aliases == ["new-name"]


async def test_fallbacks_and_limits_reach_every_process(database: str) -> None:
    rows, elsewhere = seed("http://u/v1", name="one"), seed("http://v/v1", name="two")
    with session_scope() as session:  # the same project's, but of another name
        session.execute(update(Upstream).where(Upstream.id == elsewhere.upstream_id).values(project_id=rows.project_id))
    holders = [SnapshotHolder(60), SnapshotHolder(60)]

    async def seen() -> list[tuple[list[tuple[str, str | None]], int | None]]:
        found = []
        for holder in holders:
            assert await holder.refresh()
            assert holder.current is not None
            key = holder.current.key(rows.key)
            assert key is not None
            asked = key.project.routes["gpt-4o", None].upstreams
            found.append(([(each.upstream.name, each.model) for each in asked], key.max_concurrent))
        return found

    assert await seen() == [([("one-frontier", None)], None)] * 2
    with session_scope() as session:
        route = session.scalars(select(Route).where(Route.project_id == rows.project_id)).one()
        chosen = [(elsewhere.upstream_id, "b"), (rows.upstream_id, "c"), (elsewhere.upstream_id, "a")]
        change_fallbacks(session, rows.project_id, route.id, chosen)
        change_key(session, rows.project_id, rows.key_id, max_concurrent=4)
    order = [("one-frontier", None), ("two-frontier", "b"), ("one-frontier", "c"), ("two-frontier", "a")]
    assert await seen() == [(order, 4)] * 2
    with session_scope() as session:
        change_fallbacks(session, rows.project_id, route.id, chosen[::-1])
    assert await seen() == [([order[0], *order[:0:-1]], 4)] * 2


async def test_while_the_database_is_away_the_snapshot_stays(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = seed("http://u/v1")
    holder = SnapshotHolder(60)
    await holder.refresh()
    await dispose_async()
    monkeypatch.setenv("DATABASE_URL", "postgresql://nobody@127.0.0.1:9/none")
    settings.cache_clear()
    assert not await holder.refresh()
    assert holder.failure is not None
    assert holder.current is not None
    assert holder.current.key(rows.key) is not None
    async_engine.cache_clear()


async def test_one_unreadable_credential_leaves_the_other_routes(database: str) -> None:
    broken, fine = seed("http://u/v1", name="one"), seed("http://v/v1", name="two")
    with session_scope() as session:
        session.execute(update(Upstream).where(Upstream.id == broken.upstream_id).values(credential=b"other key"))
    holder = SnapshotHolder(60)
    assert await holder.refresh()
    assert holder.current is not None
    problems = {p.id: p.routes["gpt-4o", None].upstream.problem for p in holder.current.projects.values()}
    assert problems[fine.project_id] is None
    problem = problems[broken.project_id]
    assert problem is not None
    assert problem.code == "master_key_mismatch"


def test_an_upstream_as_teacher(database: str) -> None:
    rows, other = seed("http://u/v1", name="one", model="gpt-4o"), seed("http://v/v1", name="two")
    with session_scope() as session:
        spec = upstream_spec(session, rows.project_id, rows.upstream_id)
        assert (spec.base_url, spec.model, spec.api_key) == ("http://u/v1", "gpt-4o", UPSTREAM_KEY)
        assert str(spec.prices.input_per_mtok) == "2.5000000000"
        with pytest.raises(Exception, match="no upstream"):
            upstream_spec(session, rows.project_id, other.upstream_id)
