"""Whatever an upstream sends: the client gets its answer, an error that it can read, or a cut; no fault, no waiting."""

from __future__ import annotations

import gzip
import socketserver
import threading
from collections.abc import Iterator
from itertools import pairwise

import httpx
import msgspec
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from gateway.core.db import session_scope
from gateway.models import Upstream
from tests.gateway.world import (
    SSE,
    World,
    add_student,
    chat_body,
    request_body,
    stored_calls,
    stream_events,
)

LIMIT_S = 0.4


class RawUpstream(socketserver.ThreadingTCPServer):
    """Answers every request with `wire`, piece by piece; then it hangs up, or with `hangs` says nothing more."""

    allow_reuse_address = daemon_threads = True

    def __init__(self) -> None:
        super().__init__(("127.0.0.1", 0), RawAnswer)
        self.wire: list[bytes] = []
        self.hangs = False

    @property
    def base_url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class RawAnswer(socketserver.StreamRequestHandler):
    server: RawUpstream

    def handle(self) -> None:
        length = 0
        while (line := self.rfile.readline()) not in (b"\r\n", b""):
            if line.lower().startswith(b"content-length:"):
                length = int(line.split(b":")[1])
        self.rfile.read(length)
        try:
            for piece in self.server.wire:
                self.wfile.write(piece)
            if self.server.hangs:
                self.rfile.read(1)  # until the gateway gives up
        except OSError:
            pass


@pytest.fixture
def raw() -> Iterator[RawUpstream]:
    with RawUpstream() as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,), daemon=True)
        thread.start()
        yield server
        server.shutdown()


def chunked(pieces: list[bytes]) -> bytes:
    return b"".join(b"%x\r\n%s\r\n" % (len(piece), piece) for piece in pieces if piece) + b"0\r\n\r\n"


def answer(status: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"HTTP/1.1 {status}", *(f"{name}: {value}" for name, value in headers.items())]
    return "\r\n".join(lines).encode("latin-1") + b"\r\n\r\n" + body


BODY = chat_body()
JSON = {"content-type": "application/json"}
PLAIN = answer("200 OK", JSON | {"content-length": str(len(BODY))}, BODY)
STREAM = answer("200 OK", SSE | {"transfer-encoding": "chunked"}, chunked(stream_events("one", "two \U0001f31e")))
UNTIL_CLOSED = answer("200 OK", SSE, b"".join(stream_events("one")))
ZIPPED = answer("200 OK", JSON | {"content-encoding": "gzip", "content-length": "8"}, gzip.compress(BODY)[:8])
SOUND = st.sampled_from([PLAIN, STREAM, UNTIL_CLOSED, ZIPPED])
STATUS = st.sampled_from(
    ["200 OK", "200", "000 x", "99 x", "999 odd", "1000 x", "-1 x", "abc", "", "101 Switching", "103 Early", "204 x",
     "301 Moved", "304 x", "429 x", "500 Oops", "599 x", "600 x", "200 " + "x" * 70_000]
)  # fmt: skip
HEADER = st.sampled_from(
    [("content-length", "5"), ("content-length", "99999"), ("content-length", "-1"), ("content-length", "1" * 30),
     ("content-length", "0"), ("transfer-encoding", "chunked"), ("transfer-encoding", "gzip, chunked"),
     ("transfer-encoding", "x"), ("content-encoding", "gzip"), ("content-encoding", "br"), ("content-encoding", "\xff"),
     ("content-type", "text/event-stream"), ("content-type", "\xe9"), ("connection", "upgrade"), ("upgrade", "h2c"),
     ("location", "http://127.0.0.1:1/"), ("x-stepdown-served-by", "forged"), ("set-cookie", "a=b"),
     ("x", "y" * 70_000), ("x", "y" * 300_000), ("x", "folded\r\n more"), ("x", "a\rb"), ("x", "a\nb: c"),
     ("no colon", ""), ("", "x"), ("x\0y", "z"), ("x", "\0"), ("date", ""), ("retry-after", "x")]
)  # fmt: skip
CHUNKS = st.sampled_from(
    [b"zz\r\n", b"5\r\nab\r\n", b"-1\r\n", b"ffffffffffffffffff\r\n", b"2\r\nok\r\n0\r\n\r\n",
     b"2;x=\r\nok\r\n0\r\nt: 1\r\n\r\n", b"2\nok\n0\n\n", b"0\r\n\r\n" + PLAIN, b"data: {", b"data: [DONE]\n\n",
     b"data: \xff\n\n"]
)  # fmt: skip


@st.composite
def wires(draw: st.DrawFn) -> bytes:
    """Bytes that an upstream may send: sound ones cut or damaged, heads of all kinds, noise."""
    kind = draw(st.sampled_from(["cut", "damaged", "made", "noise"]))
    if kind == "noise":
        return draw(st.binary(max_size=100))
    if kind == "made":
        body = draw(st.sampled_from([BODY, b""]) | CHUNKS | st.binary(max_size=30))
        return answer(draw(STATUS), dict(draw(st.lists(HEADER, max_size=3))), body)
    sound = draw(SOUND)
    start = draw(st.integers(0, len(sound)))
    if kind == "cut":
        return sound[:start]
    return sound[:start] + draw(st.binary(max_size=6)) + sound[start + draw(st.integers(0, 6)) :]


PATHS = st.sampled_from(["chat/completions"] * 3 + ["completions", "responses", "messages", "embeddings", "files"])
CUTS = st.lists(st.integers(0, 1_000_000), max_size=2)


def pieces_of(wire: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(c % (len(wire) + 1) for c in cuts), len(wire)]
    return [wire[a:b] for a, b in pairwise(bounds)]


def ask(world: World, stream: bool, path: str = "chat/completions") -> tuple[int, str, bytes] | None:
    """The gateway's answer: status, who gave it, and its bytes; None when it was cut."""
    try:
        with world.client.stream("POST", f"/v1/{path}", json=request_body(stream=stream)) as answer:
            return answer.status_code, answer.headers["x-stepdown-served-by"], b"".join(answer.iter_raw())
    except httpx.RemoteProtocolError:
        return None


def no_fault(caplog: pytest.LogCaptureFixture) -> None:
    """Nothing was raised that nobody had thought of."""
    assert not [record.getMessage() for record in caplog.records if record.exc_info]


@pytest.fixture
def quick(database: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("STEPDOWN_FIRST_BYTE_TIMEOUT_S", str(LIMIT_S))
    monkeypatch.setenv("STEPDOWN_IDLE_TIMEOUT_S", str(LIMIT_S))
    monkeypatch.setenv("STEPDOWN_STUDENT_TIMEOUT_S", str(LIMIT_S))


@pytest.mark.parametrize(("hangs", "examples"), [(False, 250), (True, 15)], ids=["closes", "hangs"])
def test_any_bytes_from_an_upstream(
    quick: None, raw: RawUpstream, world: World, caplog: pytest.LogCaptureFixture, hangs: bool, examples: int
) -> None:
    with session_scope() as session:
        session.get_one(Upstream, world.rows.upstream_id).base_url = raw.base_url
    world.refresh()
    raw.hangs = hangs

    @settings(max_examples=examples)
    @given(wires(), CUTS, st.booleans(), PATHS)
    @example(answer("999 odd", JSON | {"content-length": "2"}, b"{}"), [], False, "chat/completions")
    def check(wire: bytes, cuts: list[int], stream: bool, path: str) -> None:
        raw.wire = pieces_of(wire, cuts)
        got = ask(world, stream, path)
        if got is not None and got[1] == "gateway":  # else it came as it came, and was cut where it was cut
            assert got[0] in (502, 504), got
            assert set(msgspec.json.decode(got[2])["error"]) >= {"message", "type", "code"}

    check()
    no_fault(caplog)
    raw.wire, raw.hangs = [PLAIN], False
    assert world.post(request_body()).content == BODY
    calls = stored_calls()
    assert calls[-1].trainable
    assert all(call.complete for call in calls if call.trainable)


def test_any_bytes_from_a_students_engine(
    quick: None, raw: RawUpstream, world: World, caplog: pytest.LogCaptureFixture
) -> None:
    name = add_student(world.rows, raw.base_url)
    world.refresh()

    @settings(max_examples=120)
    @given(wires(), CUTS, st.booleans())
    @example(STREAM.replace(b"text/event-stream", b"application/json"), [], False)
    def check(wire: bytes, cuts: list[int], stream: bool) -> None:
        raw.wire = pieces_of(wire, cuts)
        got = ask(world, stream)
        if got is not None:
            assert got[:2] in ((200, f"student:{name}"), (200, "upstream:shop-frontier")), got

    check()
    no_fault(caplog)
    assert all(call.complete for call in stored_calls() if call.trainable)
