"""Pass-through: the app keeps its provider's key, which reaches that provider alone; strangers reach nobody else."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any
from uuid import UUID

import httpx
import openai
import psycopg
import pytest
from sqlalchemy import update

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.secretbox import seal
from gateway.core.settings import settings
from gateway.keys.service import create_key, revoke_key
from gateway.models import Route, RouteFallback, Upstream
from gateway.proxy.verified import FOR_S, MOST, Verified
from tests.gateway.world import (
    UPSTREAM_KEY,
    MockUpstream,
    Reply,
    World,
    add_student,
    chat_body,
    request_body,
    seed,
    stored_calls,
    stream_events,
    streamed,
)

THEIRS = "sk-proj-theirs-4711-never-stored"


def error(status: int) -> Reply:
    return Reply([b'{"error":{"message":"no"}}'], status=status)


@pytest.fixture
def engine() -> Iterator[MockUpstream]:
    """A student's engine, or another provider."""
    mock = MockUpstream()
    yield mock
    mock.stop()


def token_for(world: World, upstream_id: UUID | None = None, **fields: Any) -> tuple[str, UUID]:
    with session_scope() as session:
        key, token = create_key(
            session, world.rows.project_id, "app", upstream_id=upstream_id or world.rows.upstream_id, **fields
        )
        key_id = key.id
    world.refresh()
    return token, key_id


def ask(
    world: World, token: str, body: dict[str, Any] | None = None, key: str = THEIRS, path: str = "/v1/chat/completions"
) -> httpx.Response:
    headers = {"authorization": f"Bearer {key}"} if key else {}
    return httpx.post(f"{world.url}/p/{token}{path}", json=body or request_body(), headers=headers, timeout=20)


def only_for(key: str) -> Callable[[Any], Reply]:
    """An upstream that knows one key."""

    def reply(seen: Any) -> Reply:
        known = seen.header("authorization") == f"Bearer {key}"
        return Reply([chat_body()]) if known else error(401)

    return reply


def test_the_callers_key_reaches_the_upstream_and_is_kept_nowhere(world: World, database: str) -> None:
    token, _ = token_for(world)
    world.upstream.reply = streamed(*stream_events("bill", "ing"))
    client = openai.OpenAI(base_url=f"{world.url}/p/{token}/v1", api_key=THEIRS, max_retries=0)
    chunks = list(
        client.chat.completions.create(model="gpt-9", messages=[{"role": "user", "content": "hi"}], stream=True)
    )
    assert "".join(c.choices[0].delta.content or "" for c in chunks if c.choices) == "billing"
    (seen,) = world.upstream.seen
    assert seen.path == "/v1/chat/completions"
    assert [value for name, value in seen.headers if name.lower() == "authorization"] == [f"Bearer {THEIRS}"]
    assert UPSTREAM_KEY not in str(seen)
    spooled = b"".join(path.read_bytes() for path in settings().spool_dir.iterdir() if path.is_file())
    (call,) = stored_calls()
    assert (call.alias, call.trainable, call.served_by) == ("gpt-9", True, "upstream")
    with psycopg.connect(database) as connection:
        tables = connection.execute("SELECT tablename FROM pg_tables WHERE schemaname = 'public'").fetchall()
        rows = [str(connection.execute(f'SELECT t::text FROM "{name}" t').fetchall()) for (name,) in tables]
    for kept in (spooled.decode(errors="replace"), *rows):
        assert THEIRS not in kept
        assert token not in kept


@pytest.mark.parametrize("header", ["x-api-key", "api-key"])
def test_other_headers_for_keys_pass_as_they_are(world: World, header: str) -> None:
    token, _ = token_for(world)
    httpx.post(f"{world.url}/p/{token}/v1/embeddings", json={"model": "m", "input": "x"}, headers={header: THEIRS})
    (seen,) = world.upstream.seen
    assert (seen.header(header), seen.header("authorization")) == (THEIRS, None)


@pytest.mark.parametrize(
    ("path", "reaches"),
    [
        ("/v1/models", "/v1/models"),
        ("/models/gpt-9", "/v1/models/gpt-9"),
        ("/v1/v1//responses/resp_1/", "/v1/responses/resp_1"),
        ("/v1/anything?x=1", "/v1/anything"),
    ],
)
def test_every_address_of_the_upstream_is_there(world: World, path: str, reaches: str) -> None:
    token, _ = token_for(world)
    answer = httpx.get(f"{world.url}/p/{token}{path}", headers={"authorization": f"Bearer {THEIRS}"})
    assert answer.status_code == 200
    assert world.upstream.seen[0].path == reaches


def test_a_page_of_the_dashboard_is_no_token(world: World) -> None:
    page = httpx.get(f"{world.url}/p/{world.rows.project_id}/models")
    assert page.status_code in (200, 404), "the page, or where it is not built that it is not there"
    assert "api_key" not in page.text
    assert world.upstream.seen == []


def test_who_is_refused(world: World) -> None:
    token, key_id = token_for(world)
    assert ask(world, token, key="").json()["error"]["code"] == "api_key_missing"
    assert ask(world, "sdp-unknown").json()["error"]["code"] == "invalid_pass_through"
    assert ask(world, world.rows.key).json()["error"]["code"] == "invalid_pass_through", "a gateway key is no token"
    direct = httpx.post(
        f"{world.url}/v1/chat/completions", json=request_body(), headers={"authorization": f"Bearer {token}"}
    )
    assert (direct.status_code, direct.json()["error"]["code"]) == (401, "invalid_api_key"), "a token is no gateway key"
    assert ask(world, token).status_code == 200
    with session_scope() as session:
        revoke_key(session, world.rows.project_id, key_id)
    world.refresh()
    assert ask(world, token).status_code == 401
    assert len(world.upstream.seen) == 1
    for answer in (ask(world, "sdp-unknown"), ask(world, token)):
        assert token not in answer.text
        assert THEIRS not in answer.text


def test_a_stranger_reaches_no_student_and_no_dataset(world: World, engine: MockUpstream) -> None:
    add_student(world.rows, engine.base_url)
    token, _ = token_for(world)
    world.upstream.reply = only_for(THEIRS)
    bad = ask(world, token, key="sk-made-up")
    assert (bad.status_code, bad.headers["x-stepdown-served-by"]) == (401, "upstream:shop-frontier")
    first, second = ask(world, token), ask(world, token)
    assert first.headers["x-stepdown-served-by"].startswith("upstream:"), "nobody had taken the key yet"
    assert second.headers["x-stepdown-served-by"] == "student:tickets-1"
    assert ask(world, token, key="sk-made-up").headers["x-stepdown-served-by"].startswith("upstream:")
    calls = stored_calls()
    assert [(call.status, call.request is not None, call.trainable) for call in calls] == [
        (401, False, False), (200, True, True), (200, True, True), (401, False, False),
    ]  # fmt: skip
    assert calls[0].preview == ""
    (sent,) = engine.seen
    assert THEIRS not in str(sent), "the student's engine has no use for it"


def test_a_list_of_models_proves_no_key(world: World, engine: MockUpstream) -> None:
    add_student(world.rows, engine.base_url)
    token, _ = token_for(world)
    httpx.get(f"{world.url}/p/{token}/v1/models", headers={"authorization": "Bearer sk-made-up"})
    assert ask(world, token, key="sk-made-up").headers["x-stepdown-served-by"].startswith("upstream:")
    assert engine.seen == []


def test_a_stranger_is_answered_by_no_fallback_and_a_known_one_with_the_projects_key(
    world: World, engine: MockUpstream
) -> None:
    with session_scope() as session:
        spare = Upstream(
            project_id=world.rows.project_id, name="spare", kind="openai", base_url=engine.base_url,
            credential=seal("sk-of-the-project"), model=None,
        )  # fmt: skip
        session.add(spare)
        session.flush()
        route = session.query(Route).one()
        session.add(
            RouteFallback(route_id=route.id, position=0, project_id=world.rows.project_id, upstream_id=spare.id)
        )
    token, _ = token_for(world)
    world.upstream.reply = error(503)
    assert ask(world, token).status_code == 503
    assert engine.seen == []
    world.upstream.reply = only_for(THEIRS)
    assert ask(world, token).status_code == 200
    world.upstream.reply = error(503)
    answer = ask(world, token)
    assert (answer.status_code, answer.headers["x-stepdown-served-by"]) == (200, "upstream:spare")
    (seen,) = engine.seen
    assert seen.header("authorization") == "Bearer sk-of-the-project"
    assert THEIRS not in str(seen)


def test_a_token_is_for_its_own_upstream(world: World, engine: MockUpstream) -> None:
    with session_scope() as session:
        other = Upstream(
            project_id=world.rows.project_id, name="other", kind="openai", base_url=engine.base_url, credential=None,
            model=None,
        )  # fmt: skip
        session.add(other)
        session.flush()
        other_id = other.id
    token, _ = token_for(world, other_id)
    assert ask(world, token).headers["x-stepdown-served-by"] == "upstream:other"
    assert (len(engine.seen), world.upstream.seen) == (1, []), "the route of the model leads elsewhere: it is not asked"


def test_tokens_are_made_for_upstreams_that_callers_have_keys_for(world: World) -> None:
    stranger = seed("http://127.0.0.1:9/v1", name="stranger")
    with session_scope() as session, pytest.raises(StepdownError) as wrong:
        create_key(session, world.rows.project_id, "x", upstream_id=stranger.upstream_id)
    assert wrong.value.code == "upstream_not_found"
    with session_scope() as session:
        session.execute(update(Upstream).where(Upstream.id == world.rows.upstream_id).values(kind="litellm"))
    with session_scope() as session, pytest.raises(StepdownError) as wrong:
        create_key(session, world.rows.project_id, "x", upstream_id=world.rows.upstream_id)
    assert wrong.value.code == "pass_through_translated"


def test_what_is_remembered_of_keys() -> None:
    now = [0.0]
    verified = Verified(lambda: now[0])
    one, two = UUID(int=1), UUID(int=2)
    key = [(b"authorization", b"Bearer a")]
    verified.remember(one, key)
    assert verified.knows(one, key)
    assert not verified.knows(two, key)
    assert not verified.knows(one, [(b"x-api-key", b"Bearer a")])
    now[0] = FOR_S + 1
    assert not verified.knows(one, key)
    for number in range(MOST + 10):
        verified.remember(one, [(b"authorization", b"%d" % number)])
    assert len(verified._until) == MOST
    assert b"Bearer" not in repr(verified._until).encode()
