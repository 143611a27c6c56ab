"""Clients of other kinds, unmodified, each in a process of its own with nothing but a base URL and a key."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from tests.gateway.clients.captured import Captured, captured
from tests.gateway.clients.provider import EMBEDDING
from tests.gateway.clients.shapes import NUMBER, TEXT, USAGE, WORD
from tests.gateway.world import World

HERE, ROOT = Path(__file__).parent, Path(__file__).parents[3]
NODE = str(ROOT / ".venv/node/node")
OWN_ENVIRONMENT = str(ROOT / ".venv/clients/bin/python")
"""Of clients whose requirements cannot be had beside ours."""

WEATHER = {"city": WORD, "degrees": NUMBER}
EXPECTED: dict[str, Any] = {
    "plain": TEXT, "streamed": TEXT, "asynchronous": TEXT, "after_tool": TEXT, "after_tool_streamed": TEXT,
    "responses": TEXT, "transcription": TEXT, "usage": sum(USAGE), "streamed_usage": sum(USAGE),
    "structured": WEATHER, "structured_by_tool": WEATHER, "asynchronous_object": WEATHER, "partial": WEATHER,
    "several": [WEATHER], "tool": {"city": WORD}, "embedding": EMBEDDING, "models": ["gpt-4o"],
}  # fmt: skip


def run(world: World, *command: str) -> dict[str, Any]:
    """What a client's script says it got."""
    base_url = f"{world.url}/v1"
    chosen = {"OPENAI_BASE_URL": base_url, "OPENAI_API_BASE": base_url, "OPENAI_API_KEY": world.rows.key}
    quiet = {"LITELLM_LOCAL_MODEL_COST_MAP": "True", "LANGSMITH_TRACING": "false", "AI_SDK_LOG_WARNINGS": "false"}
    kept = {
        name: value for name, value in os.environ.items() if not name.startswith(("OPENAI", "STEPDOWN", "DATABASE"))
    }
    assert Path(command[0]).exists(), f"{command[0]} is not there: `make test` installs it"
    done = subprocess.run(command, capture_output=True, text=True, env=kept | chosen | quiet, timeout=120, check=False)
    assert done.returncode == 0, done.stderr
    said: dict[str, Any] = json.loads(done.stdout.splitlines()[-1])
    return said


def kinds(calls: list[Captured]) -> Counter[str]:
    """How often the stored chat answers are a text, a schema filled in, or a tool's call; each known by its words."""
    found: Counter[str] = Counter()
    for call in (call for call in calls if call.call.endpoint == "chat.completions"):
        if call.message.get("tool_calls"):
            arguments = json.loads(call.message["tool_calls"][0]["function"]["arguments"])
            assert WORD in (arguments.get("city"), str(arguments)) or [WEATHER] in arguments.values()
            found["tool"] += 1
        elif call.message["content"] == TEXT:
            found["text"] += 1
        else:
            assert json.loads(call.message["content"]) == WEATHER
            found["schema"] += 1
        found["streamed"] += call.call.streamed
        assert call.call.trainable
    return found


@pytest.mark.parametrize(
    ("command", "stored"),
    [
        ([sys.executable, "scripts/with_litellm.py"], {"text": 3, "schema": 1, "tool": 1, "streamed": 2}),
        ([OWN_ENVIRONMENT, "scripts/with_langchain.py"], {"text": 4, "schema": 1, "tool": 2, "streamed": 2}),
        ([OWN_ENVIRONMENT, "scripts/with_instructor.py"], {"schema": 1, "tool": 4, "streamed": 1}),
        ([OWN_ENVIRONMENT, "scripts/with_pydantic_ai.py"], {"text": 3, "schema": 1, "tool": 2, "streamed": 1}),
        ([NODE, "node/with_openai.mjs"], {"text": 6, "schema": 1, "tool": 2, "streamed": 4}),
        ([NODE, "node/with_ai_sdk.mjs"], {"text": 8, "schema": 2, "tool": 4, "streamed": 6}),
    ],
    ids=["litellm", "langchain", "instructor", "pydantic-ai", "openai-node", "ai-sdk"],
)
def test_a_client_gets_its_answers_and_they_are_kept(town: World, command: list[str], stored: dict[str, int]) -> None:
    got = run(town, command[0], str(HERE / command[1]))
    assert "Known: gpt-4o" in got.pop("error"), "what we refuse is told in the client's own error"
    assert got == {name: EXPECTED[name] for name in got}
    assert len(got) >= 6
    assert kinds(captured()) == stored


def curl(world: World, path: str, *options: str) -> subprocess.CompletedProcess[bytes]:
    command = ["curl", "-sS", f"{world.url}/v1/{path}", "-H", f"Authorization: Bearer {world.rows.key}", *options]
    return subprocess.run(command, capture_output=True, timeout=30, check=False)


def test_curl(town: World, tmp_path: Path) -> None:
    body = b'{"model":"gpt-4o","messages":[{"role":"user","content":"How is the weather?"}]}'
    as_json = ("-H", "content-type: application/json")
    plain = json.loads(curl(town, "chat/completions", *as_json, "-d", body.decode()).stdout)
    assert plain["choices"][0]["message"]["content"] == TEXT
    streamed = curl(town, "chat/completions", "-N", *as_json, "-d", body[:-1].decode() + ',"stream":true}').stdout
    assert streamed.endswith(b"data: [DONE]\n\n")
    packed = tmp_path / "body.gz"
    subprocess.run(["gzip", "-c"], input=body, stdout=packed.open("wb"), check=True)
    sent = (*as_json, "-H", "content-encoding: gzip", "--data-binary", f"@{packed}")
    zipped = json.loads(curl(town, "chat/completions", *sent, "--compressed").stdout)
    assert zipped["choices"][0]["message"]["content"] == TEXT
    assert kinds(captured()) == {"text": 3, "streamed": 1}
    assert town.upstream.seen[-1].body == packed.read_bytes()


def test_curl_uploads_a_file_and_hears_of_errors(town: World, tmp_path: Path) -> None:
    sound = tmp_path / "speech.wav"
    sound.write_bytes(bytes(range(256)) * 5000)
    uploaded = curl(town, "audio/transcriptions", "-F", "model=gpt-4o", "-F", f"file=@{sound}").stdout
    assert json.loads(uploaded)["text"] == TEXT
    assert sound.read_bytes() in town.upstream.seen[-1].body
    refused = curl(town, "models", "-H", "Authorization: Bearer wrong", "-w", "%{http_code}").stdout
    assert refused.endswith(b"401")
    assert json.loads(refused[:-3])["error"]["code"] == "invalid_api_key"
