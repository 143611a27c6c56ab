"""Recorded exchanges of real providers come out byte-equal, and are stored as what they said."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from gateway.core.ports import free_port
from tests.gateway.world import running_gateway, seed, stored_calls, until

SHARED = Path(__file__).parents[3].parent / "shared"
RECORDINGS, REPLAY = SHARED / "data" / "wire.jsonl.gz", SHARED / "tools" / "replay_upstream.py"
pytestmark = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not beside this clone")


PATHS = {"chat": "/v1/chat/completions", "responses": "/v1/responses", "messages": "/v1/messages"}


def recordings(streamed: bool = False) -> list[dict[str, Any]]:
    with gzip.open(RECORDINGS, "rt") as lines:
        return [e for e in map(json.loads, lines) if e["kind"] in PATHS and (e["streamed"] or not streamed)]


@contextmanager
def replaying(*options: str) -> Iterator[str]:
    port = free_port()
    argv = [sys.executable, str(REPLAY), str(RECORDINGS), "--port", str(port), *options]
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/health").status_code == 200
        except httpx.TransportError:
            return False

    try:
        until(answers)
        yield url
    finally:
        process.kill()
        process.wait()


@contextmanager
def relaying(replay: str) -> Iterator[Callable[[dict[str, Any]], tuple[bytes, httpx.Response]]]:
    """Asks for an exchange through the gateway; what came, as far as it came."""
    openai = seed(f"{replay}/v1", alias="*")
    anthropic = seed(f"{replay}/v1", alias="*", name="claude", kind="anthropic")
    with running_gateway() as (url, _), httpx.Client(base_url=url, timeout=20) as client:

        def ask(exchange: dict[str, Any]) -> tuple[bytes, httpx.Response]:
            rows = anthropic if exchange["kind"] == "messages" else openai
            headers = {"authorization": f"Bearer {rows.key}", "x-replay-id": exchange["id"]}
            body, got = json.dumps(exchange["request"]).encode(), b""
            asking = client.stream("POST", PATHS[exchange["kind"]], content=body, headers=headers)
            with suppress(httpx.RemoteProtocolError), asking as answer:
                for piece in answer.iter_raw():
                    got += piece
            return got, answer

        yield ask


def without_usage(exchange: dict[str, Any], payload: bytes) -> bytes:
    """The stream as the app would have got it, had we not asked for usage."""
    asked = (exchange["request"].get("stream_options") or {}).get("include_usage")
    if exchange["kind"] != "chat" or not exchange["streamed"] or asked:
        return payload
    events = payload.split(b"\n\n")
    kept = [e for e in events if not (b'"usage":{' in e.replace(b" ", b"") and b'"choices":[]' in e.replace(b" ", b""))]
    return b"\n\n".join(kept)


def bytes_of(exchange: dict[str, Any]) -> bytes:
    return without_usage(exchange, exchange["response"].encode("utf-8", "surrogatepass"))


def test_every_exchange(database: str) -> None:
    exchanges = recordings()
    assert len(exchanges) > 400
    with replaying("--piece", "37") as replay, relaying(replay) as ask:
        for exchange in exchanges:
            got, answer = ask(exchange)
            assert got == bytes_of(exchange), exchange["id"]
            assert answer.status_code == exchange["status"]
            for name in exchange["headers"].keys() - {"transfer-encoding"}:
                assert answer.headers.get(name) == exchange["headers"][name], exchange["id"]
        seen = httpx.get(f"{replay}/seen").json()
    for exchange, sent in zip(exchanges, seen[-len(exchanges) :], strict=True):
        assert sent["path"] == PATHS[exchange["kind"]]
        assert {k: v for k, v in sent["body"].items() if k != "stream_options"} == {
            k: v for k, v in exchange["request"].items() if k != "stream_options"
        }
    check_stored(exchanges)


@pytest.mark.parametrize("size", [1, 7, 4096])
def test_streams_in_pieces_of_any_size(database: str, size: int) -> None:
    exchanges = recordings(streamed=True)
    with replaying("--piece", str(size)) as replay, relaying(replay) as ask:
        for exchange in exchanges:
            assert ask(exchange)[0] == bytes_of(exchange), exchange["id"]
    check_stored(exchanges)


def test_streams_with_comments(database: str) -> None:
    exchanges = recordings(streamed=True)
    with replaying("--piece", "64", "--comment-every", "2") as replay, relaying(replay) as ask:
        for exchange in exchanges:
            got, _ = ask(exchange)
            assert got.count(b": keepalive\n") > 0, exchange["id"]
            assert got.replace(b": keepalive\n", b"") == bytes_of(exchange), exchange["id"]
    check_stored(exchanges)


def test_streams_that_break_off_are_passed_on_as_far_as_they_came_and_never_learned(database: str) -> None:
    exchanges = [e for e in recordings(streamed=True) if len(e["response"]) > 1000]
    with replaying("--piece", "50", "--abort-after", "600") as replay, relaying(replay) as ask:
        for exchange in exchanges:
            got, _ = ask(exchange)
            assert 0 < len(got) <= 600, exchange["id"]
            assert bytes_of(exchange).startswith(got), exchange["id"]
    calls = stored_calls()
    assert [(call.complete, call.trainable, bool(call.error)) for call in calls] == [(False, False, True)] * len(
        exchanges
    )


def last_said(exchange: dict[str, Any]) -> dict[str, Any]:
    """The answer as the provider itself summed it up: the whole of it, or what its last events say."""
    if not exchange["streamed"]:
        return json.loads(exchange["response"])
    events = [json.loads(line[5:]) for line in exchange["response"].splitlines() if line.startswith("data: {")]
    if exchange["kind"] == "responses":
        return events[-1]["response"]
    if exchange["kind"] == "messages":
        start = next(e["message"] for e in events if e["type"] == "message_start")
        end = [e for e in events if e["type"] == "message_delta"][-1]
        texts = [e["delta"]["text"] for e in events if e.get("delta", {}).get("type") == "text_delta"]
        return start | end["delta"] | {"usage": start["usage"] | end["usage"], "text": "".join(texts)}
    told = [e.get("usage") or (e.get("x_groq") or {}).get("usage") for e in events]
    return {"usage": [usage for usage in told if usage][-1]}


def tokens(kind: str, usage: dict[str, Any]) -> tuple[int, set[int]]:
    """Prompt tokens, and what the completion's may be: some providers count reasoning apart."""
    if kind == "chat":
        reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
        return usage["prompt_tokens"], {usage["completion_tokens"], usage["completion_tokens"] + reasoning}
    cached = usage.get("cache_read_input_tokens", 0) + usage.get("cache_creation_input_tokens", 0)
    return usage["input_tokens"] + cached, {usage["output_tokens"]}


def check_stored(exchanges: list[dict[str, Any]]) -> None:
    calls = stored_calls()
    assert len(calls) == len(exchanges)
    untrained = 0
    for exchange, call in zip(exchanges, calls, strict=True):
        assert call.status == exchange["status"]
        if exchange["status"] != 200:
            assert (call.trainable, bool(call.error)) == (False, True)
            continue
        with session_scope() as session:
            request, response = load_request(session, call), load_response(session, call)
        assert request == exchange["request"], exchange["id"]
        assert response is not None
        said = last_said(exchange)
        if not exchange["streamed"] or exchange["kind"] == "responses":
            assert response == said, exchange["id"]
        if said.get("usage"):
            prompt, completion = tokens(exchange["kind"], said["usage"])
            assert call.prompt_tokens == prompt, exchange["id"]
            assert call.completion_tokens in completion, exchange["id"]
        if exchange["kind"] == "chat":
            message = response["choices"][0]["message"]
            assert message.get("content") or message.get("tool_calls"), exchange["id"]
        if exchange["kind"] == "messages" and exchange["streamed"]:
            assert "".join(b.get("text", "") for b in response["content"] if b["type"] == "text") == said["text"]
            assert (response["stop_reason"], response["usage"]) == (said["stop_reason"], said["usage"])
            assert all(isinstance(b["input"], dict) for b in response["content"] if b["type"] == "tool_use")
        if exchange["kind"] != "chat":
            assert call.complete == (response.get("status") != "queued"), exchange["id"]
        untrained += not call.trainable
    assert untrained < 25, "some do not say why they finished, or were cut by length: the rest can be learned"
