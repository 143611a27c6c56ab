"""Recorded exchanges of real providers come out byte-equal, and are stored as what they said."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.capture.bodies import load_response
from gateway.core.db import session_scope
from gateway.core.ports import free_port
from tests.gateway.world import running_gateway, seed, stored_calls, until

SHARED = Path(__file__).parents[3].parent / "shared"
RECORDINGS, REPLAY = SHARED / "data" / "wire.jsonl.gz", SHARED / "tools" / "replay_upstream.py"
pytestmark = pytest.mark.skipif(not RECORDINGS.exists(), reason="the recordings are not beside this clone")


def recordings() -> list[dict[str, Any]]:
    with gzip.open(RECORDINGS, "rt") as lines:
        return [e for e in map(json.loads, lines) if e["kind"] == "chat"]


@pytest.fixture(params=[1, 37])
def replay(request: pytest.FixtureRequest) -> Iterator[str]:
    port = free_port()
    argv = [sys.executable, str(REPLAY), str(RECORDINGS), "--port", str(port), "--piece", str(request.param)]
    process = subprocess.Popen(argv, stderr=subprocess.DEVNULL)
    url = f"http://127.0.0.1:{port}"

    def answers() -> bool:
        try:
            return httpx.get(f"{url}/health").status_code == 200
        except httpx.TransportError:
            return False

    until(answers)
    yield url
    process.kill()
    process.wait()


def without_usage(payload: bytes) -> bytes:
    """The stream as the app would have got it, had we not asked for usage."""
    events = payload.split(b"\n\n")
    kept = [e for e in events if not (b'"usage":{' in e.replace(b" ", b"") and b'"choices":[]' in e.replace(b" ", b""))]
    return b"\n\n".join(kept)


def test_every_chat_exchange(database: str, replay: str) -> None:
    exchanges = recordings()
    assert len(exchanges) > 100
    rows = seed(f"{replay}/v1", alias="*")
    with running_gateway() as (url, _), httpx.Client(base_url=url, timeout=20) as client:
        for exchange in exchanges:
            body = json.dumps(exchange["request"]).encode()
            headers = {"authorization": f"Bearer {rows.key}", "x-replay-id": exchange["id"]}
            with client.stream("POST", "/v1/chat/completions", content=body, headers=headers) as answer:
                got = b"".join(answer.iter_raw())
            payload = exchange["response"].encode("utf-8", "surrogatepass")
            asked = (exchange["request"].get("stream_options") or {}).get("include_usage")
            if exchange["streamed"] and not asked:
                payload = without_usage(payload)
            assert got == payload, exchange["id"]
            assert answer.status_code == exchange["status"]
            for name in exchange["headers"].keys() - {"transfer-encoding"}:
                assert answer.headers.get(name) == exchange["headers"][name], exchange["id"]
        seen = httpx.get(f"{replay}/seen").json()
    for exchange, sent in zip(exchanges, seen[-len(exchanges) :], strict=True):
        assert {k: v for k, v in sent["body"].items() if k != "stream_options"} == {
            k: v for k, v in exchange["request"].items() if k != "stream_options"
        }
    check_stored(exchanges)


def said_usage(exchange: dict[str, Any]) -> dict[str, Any]:
    """The usage that the provider reported last."""
    if not exchange["streamed"]:
        return json.loads(exchange["response"]).get("usage") or {}
    chunks = [line[6:] for line in exchange["response"].splitlines() if line.startswith("data: {")]
    told = [c.get("usage") or (c.get("x_groq") or {}).get("usage") for c in map(json.loads, chunks)]
    return [usage for usage in told if usage][-1]


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
            response = load_response(session, call)
        assert response is not None
        if not exchange["streamed"]:
            assert response == json.loads(exchange["response"]), exchange["id"]
            assert call.complete
        usage = said_usage(exchange)
        assert call.prompt_tokens == usage["prompt_tokens"], exchange["id"]
        reasoning = (usage.get("completion_tokens_details") or {}).get("reasoning_tokens") or 0
        assert call.completion_tokens in (usage["completion_tokens"], usage["completion_tokens"] + reasoning)
        message = response["choices"][0]["message"]
        assert message.get("content") or message.get("tool_calls"), exchange["id"]
        assert call.answer_preview
        untrained += not call.trainable
    assert untrained < 15, "one provider leaves out why it finished, some were cut by length: the rest can be learned"
