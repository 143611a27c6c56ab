"""Parents plus what is new, dictionaries, deleting, forgetting: whatever goes, the rest reads as before."""

from __future__ import annotations

import json
from collections.abc import Iterator
from datetime import UTC, datetime, timedelta
from typing import Any
from uuid import UUID

import pytest
from sqlalchemy import func, select, text, update

from gateway.capture import dictionaries
from gateway.capture.blobs import dictionary_of
from gateway.capture.bodies import load_request, load_response
from gateway.capture.deletion import delete_call
from gateway.capture.retention import forgetting
from gateway.capture.spool import Spool
from gateway.capture.writer import Writer
from gateway.core.db import session_scope
from gateway.core.ids import new_id
from gateway.core.settings import settings
from gateway.models import ApiKey, Blob, BlobDictionary, Call, LedgerEntry, Project, Route, RouteRevision
from tests.gateway.capture.test_record import envelope
from tests.gateway.world import Rows, chat_body, seed

SYSTEM = {"role": "system", "content": "You rebook flights. " * 20}


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":"), ensure_ascii=False).encode()


class Store:
    """A project whose calls are spooled and stored by one writer, as long as it lives."""

    def __init__(self, rows: Rows) -> None:
        self.rows = rows
        settings().spool_dir.mkdir(exist_ok=True)
        self.writer = Writer(settings().spool_dir)
        self._spool = Spool(settings().spool_dir)

    def put(self, messages: list[dict[str, Any]], answer: str = "billing", **fields: Any) -> UUID:
        id: UUID = fields.pop("id", None) or new_id()
        values = {"id": id, "project_id": self.rows.project_id, "key_id": self.rows.key_id} | fields
        values = {"upstream_id": self.rows.upstream_id} | values
        made = envelope(**values)
        self._spool.append(made, compact({"model": "gpt-4o", "messages": messages}), [chat_body(answer)])
        while self.writer.advance():
            pass
        return id

    def close(self) -> None:
        self._spool.close()


@pytest.fixture
def store(database: str) -> Iterator[Store]:
    made = Store(seed("http://127.0.0.1:9/v1"))
    yield made
    made.close()


def read(id: UUID) -> tuple[Call, Any, Any]:
    with session_scope() as session:
        call = session.scalars(select(Call).where(Call.id == id)).one()
        return call, (load_request(session, call) or {})["messages"], load_response(session, call)


def count(of: Any) -> int:
    with session_scope() as session:
        return session.scalar(select(func.count()).select_from(of)) or 0


def user(content: str) -> dict[str, Any]:
    return {"role": "user", "content": content}


def said(content: str) -> dict[str, Any]:
    return {"role": "assistant", "content": content}


def conversation(store: Store, turns: int = 4) -> tuple[list[UUID], list[list[dict[str, Any]]]]:
    """Calls that each go on from the one before, and what each of them was asked."""
    messages, ids, asked = [SYSTEM, user("Hello")], [], []
    for turn in range(turns):
        ids.append(store.put(list(messages), f"answer {turn}"))
        asked.append(list(messages))
        messages += [said(f"answer {turn}"), user(f"question {turn}")]
    return ids, asked


def test_a_turn_is_stored_as_what_is_new_in_it(store: Store) -> None:
    ids, asked = conversation(store)
    for place, (id, messages) in enumerate(zip(ids, asked, strict=True)):
        call, request, response = read(id)
        assert request == messages
        assert response["choices"][0]["message"]["content"] == f"answer {place}"
        if place:
            assert call.parent_id == ids[place - 1]
            assert call.shared == len(messages) - 1, "the beginning, and the answer that the app sent back"
            assert call.items is not None
            assert len(call.items) == 16
    assert count(Blob) == 5, "the system prompt and four user turns; answers lie with their calls"


def test_an_edited_history_is_stored_as_it_was_sent(store: Store) -> None:
    _, asked = conversation(store)
    edited = [SYSTEM, user("Hello"), said("answer 0, but nicer"), user("question 0")]
    call, request, _ = read(store.put(edited))
    assert request == edited
    assert call.shared == 2, "only what came before the edit"
    dropped = asked[3][2:]
    call, request, _ = read(store.put(dropped))
    assert (request, call.parent_id) == (dropped, None)


def test_equal_calls_do_not_make_a_long_line_of_ancestors(store: Store) -> None:
    first, *others = [store.put([SYSTEM, user("Hello")]) for _ in range(4)]
    for id in others:
        call, request, _ = read(id)
        assert (call.parent_id, call.shared, call.items) == (first, 2, b"")
        assert request == [SYSTEM, user("Hello")]


def test_another_writer_knows_no_beginnings_and_loses_nothing(store: Store) -> None:
    _, asked = conversation(store)
    store.writer = Writer(settings().spool_dir)
    call, request, _ = read(store.put(asked[3]))
    assert (request, call.parent_id) == (asked[3], None)


def test_projects_share_nothing(store: Store) -> None:
    ids, asked = conversation(store)
    other = seed("http://127.0.0.1:9/v1", name="other")
    id = store.put(asked[3], project_id=other.project_id, key_id=other.key_id, upstream_id=other.upstream_id)
    call, request, _ = read(id)
    assert (request, call.parent_id) == (asked[3], None)
    with session_scope() as session:
        assert not delete_call(session, other.project_id, ids[0]), "a call of another project is not there"
        assert delete_call(session, other.project_id, id)
    assert read(ids[3])[1] == asked[3]


@pytest.mark.parametrize("place", [0, 1, 3])
def test_what_goes_on_from_a_deleted_call_reads_as_before(store: Store, place: int) -> None:
    ids, asked = conversation(store)
    with session_scope() as session:
        assert delete_call(session, store.rows.project_id, ids[place])
    for id, messages in zip(ids, asked, strict=True):
        if id != ids[place]:
            assert read(id)[1] == messages
    assert read(store.put([*asked[3], said("answer 3"), user("and now?")]))[1][-1] == user("and now?")


def test_deleting_a_call_deletes_what_only_it_used(store: Store) -> None:
    tools = [{"type": "function", "function": {"name": "f", "description": "d" * 900}}]
    one = store.put([SYSTEM, user("mine alone")])
    two = store.put([SYSTEM, user("the other's")])
    with session_scope() as session:
        session.execute(update(Call).where(Call.id == two).values(request={"model": "gpt-4o", "seed": 1}))
    blobs, charges = count(Blob), count(LedgerEntry)
    with session_scope() as session:
        assert delete_call(session, store.rows.project_id, one)
    assert (count(Blob), count(LedgerEntry)) == (blobs - 1, charges), "the prompt stays, and so does the money"
    assert read(two)[1] == [SYSTEM, user("the other's")]
    with session_scope() as session:
        assert delete_call(session, store.rows.project_id, two)
    assert (count(Blob), count(Call)) == (0, 0)
    assert tools


def test_large_fields_in_use_stay(store: Store) -> None:
    def put(content: str) -> UUID:
        id = new_id()
        body = {"model": "gpt-4o", "tools": ["x" * 900], "messages": [user(content)]}
        spool = Spool(settings().spool_dir)
        made = envelope(id=id, project_id=store.rows.project_id, key_id=store.rows.key_id)
        spool.append(made, compact(body), [chat_body()])
        spool.close()
        while store.writer.advance():
            pass
        return id

    one, two = put("a"), put("b")
    with session_scope() as session:
        assert delete_call(session, store.rows.project_id, one)
    with session_scope() as session:
        call = session.scalars(select(Call).where(Call.id == two)).one()
        assert (load_request(session, call) or {})["tools"] == ["x" * 900]
    with session_scope() as session:
        assert delete_call(session, store.rows.project_id, two)
    assert count(Blob) == 0


def test_bodies_are_compressed_with_what_they_have_in_common(store: Store, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(dictionaries, "_TRAIN_AT", (150, 400))
    asked = {}
    for number in range(250):
        messages = [SYSTEM, user(f"Where is the parcel with the number {number * 7919}? It was due last week.")]
        asked[store.put(messages, f"The parcel {number * 7919} is on its way.")] = messages
    with session_scope() as session:
        known = set(session.scalars(select(BlobDictionary.id)))
        used = {dictionary_of(data) for data in session.scalars(select(Blob.data))}
        sizes = session.execute(select(Call.id, func.length(Call.response)).order_by(Call.id)).all()
    assert len(known) == 2
    assert used == known | {0}
    assert sizes[-1][1] < sizes[0][1] / 3
    dictionaries._codecs.clear()
    for id, messages in asked.items():
        assert read(id)[1] == messages


def aged(days: float) -> UUID:
    """An id of so many days ago."""
    moment = datetime.now(UTC) - timedelta(days=days)
    return UUID(int=(int(moment.timestamp() * 1000) << 80) | (new_id().int & ((1 << 80) - 1)))


def forget() -> None:
    for _ in forgetting(datetime.now(UTC), session_scope):
        pass


def left() -> set[UUID]:
    with session_scope() as session:
        return set(session.scalars(select(Call.id)))


def test_calls_are_forgotten_in_time(store: Store) -> None:
    old, fresh = store.put([SYSTEM, user("old")], id=aged(40)), store.put([SYSTEM, user("fresh")], id=aged(20))
    forget()
    assert left() == {old, fresh}, "without a limit they stay"
    with session_scope() as session:
        session.execute(update(Project).values(retention_days=30))
    forget()
    assert left() == {fresh}
    assert count(Blob) == 2
    assert read(fresh)[1] == [SYSTEM, user("fresh")]


def test_a_key_and_a_route_may_forget_sooner(store: Store) -> None:
    with session_scope() as session:
        route = session.scalars(select(Route)).one()
        revision = RouteRevision(
            project_id=store.rows.project_id, route_id=route.id, number=1, stage="observe", share=0.0, reason="made"
        )
        session.add(revision)
        session.flush()
        other = ApiKey(project_id=store.rows.project_id, name="short", prefix="sd-x", hash=b"x" * 32, retention_days=2)
        session.add(other)
        session.flush()
        revision_id, other_id = revision.id, other.id
        session.execute(update(Route).values(retention_days=5))
    by_key = store.put([user("a")], id=aged(3), key_id=other_id)
    young = store.put([user("b")], id=aged(1), key_id=other_id)
    by_route = store.put([user("c")], id=aged(6), route_revision_id=revision_id)
    kept = store.put([user("d")], id=aged(6))
    assert left() == {by_key, young, by_route, kept}
    forget()
    assert left() == {young, kept}


def test_a_conversation_across_the_limit_reads_as_before(store: Store) -> None:
    first = store.put([SYSTEM, user("Hello")], "answer 0", id=aged(31))
    messages = [SYSTEM, user("Hello"), said("answer 0"), user("go on")]
    second = store.put(messages, id=aged(29))
    assert read(second)[0].parent_id == first
    with session_scope() as session:
        session.execute(update(Project).values(retention_days=30))
    forget()
    assert left() == {second}
    assert read(second)[1] == messages


def test_months_that_hold_nothing_any_more_go(store: Store) -> None:
    id = store.put([user("long ago")], id=aged(400))
    month = f"call_{datetime.now(UTC) - timedelta(days=400):%Y_%m}"

    def exists() -> bool:
        with session_scope() as session:
            return bool(session.scalar(text(f"SELECT to_regclass('{month}') IS NOT NULL")))

    assert exists()
    with session_scope() as session:
        session.execute(update(Project).values(retention_days=30))
    forget()
    assert (id in left(), exists()) == (False, False)
    assert store.put([user("again")], id=aged(400)) in left(), "a late record makes its month anew"


def test_the_writer_forgets_by_itself_when_it_has_nothing_to_store(store: Store) -> None:
    store.put([user("old")], id=aged(40))
    with session_scope() as session:
        session.execute(update(Project).values(retention_days=30))
    while store.writer.advance() or store.writer._forget():
        pass
    assert left() == set()
