"""Whatever a client sends: never a fault of ours, always an answer its library can read, and the next call works."""

from __future__ import annotations

import gzip
import json
import socket
import zlib
from pathlib import Path
from typing import Any

import httpx
import msgspec
import pytest
import zstandard
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from gateway.core.settings import settings as chosen
from gateway.models import Route
from tests.gateway.world import (
    Reply,
    Seen,
    World,
    add_student,
    chat_body,
    request_body,
    stored_calls,
    stream_events,
    streamed,
)

PATHS = st.sampled_from(
    ["chat/completions"] * 6
    + ["completions", "responses", "responses/resp_1/cancel", "embeddings", "moderations", "images/edits", "messages",
       "audio/transcriptions", "messages/count_tokens", "files", "chat/completions/x", "%00", "models/%ff", "a/../b"]
)  # fmt: skip
TEXT = st.text(max_size=8) | st.sampled_from(["gpt-4o", "renamed", "*", "\0", "a" * 300, "\ud800", "json_schema"])
VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.sampled_from([10**400, -1, 1e308]) | st.floats() | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=8,
)
FIELDS = st.sampled_from(
    ["model", "messages", "stream", "stream_options", "metadata", "tools", "tool_choice", "response_format", "n",
     "logprobs", "max_tokens", "store", "stop", "prompt", "content", "role", "include_usage", "task", "tools", "input"]
)  # fmt: skip
SHAPED = st.recursive(VALUES, lambda inner: st.dictionaries(FIELDS, inner, max_size=5) | st.lists(inner, max_size=3))
SOUND = request_body("hi", stream=False, temperature=0.5)
NESTED = st.tuples(st.sampled_from(["[", '{"a":', '[{"content":']), st.sampled_from([10, 900, 2000, 100_000])).map(
    lambda made: made[0] * made[1]
)


def as_json(value: Any) -> bytes:
    """JSON as Python writes it: NaN, lone surrogates and numbers beyond 64 bits included."""
    return json.dumps(value).encode()


STREAMED = as_json(SOUND | {"stream": True, "stream_options": {}})
BODIES = st.one_of(
    st.binary(max_size=200),
    st.dictionaries(FIELDS, SHAPED, max_size=6).map(as_json),
    st.dictionaries(FIELDS, SHAPED, max_size=3).map(lambda wrong: as_json(SOUND | wrong)),
    st.dictionaries(FIELDS, SHAPED, max_size=3).map(lambda wrong: as_json(SOUND | {"stream": True} | wrong)),
    SHAPED.map(lambda wrong: as_json(SOUND | {"messages": [wrong, {"role": "user", "content": wrong}]})),
    st.tuples(FIELDS, NESTED).map(lambda deep: as_json(SOUND)[:-1] + f',"{deep[0]}":{deep[1]}'.encode()),
    st.tuples(FIELDS, st.integers(0, 3000)).map(
        lambda deep: as_json(SOUND)[:-1] + f',"{deep[0]}":{"[" * deep[1]}{"]" * deep[1]}}}'.encode()
    ),
    st.integers(0, len(as_json(SOUND))).map(lambda end: as_json(SOUND)[:end]),
    st.sampled_from(["utf-8-sig", "utf-16", "utf-32"]).map(as_json(SOUND).decode().encode),
    st.sampled_from([b"\0", b"\xff", b"\xed\xa0\x80", b'"', b"NaN", b"\\ud800", b"\\u0000"]).map(
        lambda odd: as_json(SOUND).replace(b"hi", odd)
    ),
    st.sampled_from([b"model", b"stream", b"stream_options"]).map(
        lambda name: b'{"%s":1,' % name + as_json(SOUND)[1:-1] + b',"%s":{"a":2},"stream":true}' % name
    ),
)
ENCODINGS = st.sampled_from([None] * 6 + ["gzip", "deflate", "zstd", "br", "gzip, gzip", "identity", "\xff", ""])
KINDS = st.sampled_from(
    ["application/json"] * 4
    + ["multipart/form-data; boundary=x", "multipart/form-data", "text/plain", "", "application/json; charset=latin-1"]
)
FORMS = st.lists(
    st.sampled_from(
        [b"--x\r\n", b"--x--\r\n", b'Content-Disposition: form-data; name="model"\r\n\r\n', b"gpt-4o", b"renamed\r\n",
         b'content-disposition: form-data; name="file"; filename="a\0"\r\n', b'name="stream"\r\n\r\ntrue\r\n', b"\r\n"]
    ) | st.binary(max_size=10)
).map(b"".join)  # fmt: skip


def packed(body: bytes, encoding: str | None, whole: bool) -> bytes:
    """The body under its content-encoding; not `whole`: its end is missing."""
    if encoding in ("gzip", "gzip, gzip"):
        body = gzip.compress(body)
    elif encoding == "deflate":
        body = zlib.compress(body)
    elif encoding == "zstd":
        body = zstandard.compress(body)
    return body if whole else body[: len(body) // 2]


def provider(seen: Seen) -> Reply:
    """Answers anything."""
    return streamed(*stream_events("ok")) if b'"include_usage":true' in seen.body else Reply([chat_body()])


@pytest.fixture(params=["upstream", "student"])
def any_world(request: pytest.FixtureRequest, database: str) -> World:
    """With `student` its calls are meant for one, so that the request is read by everything that reads any."""
    world: World = request.getfixturevalue("world")
    world.upstream.reply = provider
    with session_scope() as session:
        session.add(
            Route(
                project_id=world.rows.project_id,
                alias="renamed",
                upstream_id=world.rows.upstream_id,
                upstream_model="x",
            )
        )
    if request.param == "student":
        add_student(world.rows, world.upstream.base_url, tools=True)
    world.refresh()
    return world


def is_sound(answer: httpx.Response) -> None:
    """An answer of the provider's, or an error of ours in OpenAI's shape."""
    assert "Traceback" not in answer.text
    if answer.headers.get("x-stepdown-served-by", "gateway") != "gateway":
        assert answer.status_code == 200
        return
    assert 400 <= answer.status_code < 500, answer.text
    error = answer.json()["error"]
    assert set(error) == (
        {"message", "type", "code"} if "type" in answer.json() else {"message", "type", "param", "code"}
    )
    assert error["message"]
    assert error["code"] != "internal_error"


def serves(world: World) -> None:
    """The gateway still answers, and every call so far is stored and can be read again."""
    assert world.post(request_body()).status_code == 200
    calls = stored_calls()
    with session_scope() as session:
        for call in calls:
            load_request(session, call)
            load_response(session, call)
        assert load_request(session, calls[-1]) == request_body()
    assert not list(Path(chosen().spool_dir).glob("rejected/*"))


def test_any_body(any_world: World) -> None:
    @settings(max_examples=250)
    @given(PATHS, BODIES, ENCODINGS, st.booleans(), KINDS)
    @example("chat/completions", STREAMED[:-1] + b',"\\ud800":1}', None, True, "application/json")
    @example("embeddings", b'{"model":"renamed","\\ud800":1}', None, True, "application/json")
    @example("chat/completions", as_json(request_body("\ud83d")), None, True, "application/json")
    def check(path: str, body: bytes, encoding: str | None, whole: bool, kind: str) -> None:
        headers = {"content-type": kind} | ({"content-encoding": encoding} if encoding is not None else {})
        raw = [(n.encode(), v.encode("latin-1")) for n, v in headers.items()]
        is_sound(any_world.client.post(f"/v1/{path}", content=packed(body, encoding, whole), headers=raw))

    check()
    serves(any_world)


def test_any_form(any_world: World) -> None:
    @settings(max_examples=60)
    @given(st.sampled_from(["audio/transcriptions", "images/edits", "chat/completions"]), FORMS)
    def check(path: str, form: bytes) -> None:
        headers = {"content-type": "multipart/form-data; boundary=x"}
        is_sound(any_world.client.post(f"/v1/{path}", content=form, headers=headers))

    check()
    serves(any_world)


HEADERS = st.lists(
    st.tuples(
        st.sampled_from(
            [b"x-stepdown-task", b"x-stepdown-capture", b"x-stepdown-trajectory", b"x-app", b"idempotency-key",
             b"accept", b"openai-organization", b"accept-encoding", b"connection", b"te", b"authorization",
             b"api-key", b"cookie"]
        ),
        st.binary(max_size=30).map(lambda v: bytes(b for b in v if b >= 32 and b != 127).strip() or b"x")
        | st.integers(1, 6).map(lambda n: b"x" * 10**n) | st.sampled_from([b"Bearer", b"Basic eDp5", b", ,"]),
    ),
    max_size=5,
)  # fmt: skip


def test_any_header(any_world: World) -> None:
    @settings(max_examples=120)
    @given(HEADERS, st.sampled_from(["chat/completions", "embeddings", "models"]))
    def check(headers: list[tuple[bytes, bytes]], path: str) -> None:
        method = "GET" if path == "models" else "POST"
        content = b"" if path == "models" else msgspec.json.encode(SOUND)
        answer = any_world.client.request(method, f"/v1/{path}", content=content, headers=headers)
        long = sum(len(value) for _, value in headers) > 8000  # the provider of this test takes no longer ones
        if (path != "models" or answer.status_code != 200) and not (long and answer.status_code == 400):
            is_sound(answer)

    check()
    serves(any_world)


REQUEST = b"POST /v1/chat/completions HTTP/1.1\r\nhost: x\r\nauthorization: Bearer %s\r\n%s\r\n%s"


def test_any_bytes_on_the_connection(world: World) -> None:
    key = world.rows.key.encode()
    body = msgspec.json.encode(SOUND)
    port = int(world.url.rsplit(":", 1)[1])

    @settings(max_examples=80)
    @given(
        st.binary(max_size=80)
        | st.sampled_from(
            [REQUEST % (key, b"content-length: -1\r\n", body), REQUEST % (key, b"content-length: x\r\n", body),
             REQUEST % (key, b"content-length: 99999999999999999999999\r\n", body),
             REQUEST % (key, b"content-length: 5\r\ntransfer-encoding: chunked\r\n", b"0\r\n\r\n"),
             REQUEST % (key, b"transfer-encoding: chunked\r\n", b"zz\r\n" + body),
             REQUEST % (key, b"transfer-encoding: chunked\r\n", b"5\r\n{}\r\n"),
             REQUEST % (key, b"x-odd: \0\x01\r\ncontent-length: 2\r\n", b"{}"),
             REQUEST % (key, b"x y: z\r\ncontent-length: 2\r\n", b"{}"),
             REQUEST % (key, b"content-length: 500\r\n", body), b"OPTIONS * HTTP/1.1\r\n\r\n",
             b"CONNECT x:443 HTTP/1.1\r\n\r\n", b"GET http://x/v1/models HTTP/1.1\r\n\r\n", b"GET ? HTTP/1.1\r\n\r\n",
             b"GET /\xff HTTP/1.1\r\n\r\n", b"GET /v1/models HTTP/0.9\r\n\r\n", b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"]
        )
    )  # fmt: skip
    def check(sent: bytes) -> None:
        with socket.create_connection(("127.0.0.1", port), timeout=10) as connection:
            connection.sendall(sent)
            connection.shutdown(socket.SHUT_WR)
            got = b"".join(iter(lambda: connection.recv(65536), b""))
        assert not got.startswith(b"HTTP/1.1 5")
        assert b"Traceback" not in got

    check()
    serves(world)
