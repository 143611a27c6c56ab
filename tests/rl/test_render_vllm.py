"""The renderer against a running vLLM: the same ids, for every shape of message, template and family.

It is vLLM's own server with its own request parsing and templates, without the engine behind it: nothing is sampled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from gateway.core.messages import plain
from gateway.core.ports import free_port
from rl.render import Renderer
from rl.rollout.server import ServerSpec, template_flags
from tests.rl.templates import FAMILIES, model_folder

START_S = 120.0
SYSTEM = {"role": "system", "content": "Sort the tickets."}
USER = {"role": "user", "content": "héllo 😀 你好"}
TEXT = {"type": "text", "text": "a"}
TOOL = {
    "type": "function",
    "function": {"name": "look_up", "description": "Finds.", "parameters": {"type": "object", "properties": {}}},
}
BARE_TOOL = {"type": "function", "function": {"name": "look_up"}}
STRICT_TOOL = {"type": "function", "function": {"strict": True, "parameters": {}, "name": "look_up"}}


def call(arguments: Any, **more: Any) -> dict[str, Any]:
    return {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": arguments}, **more}
        ],
    }


RESULT = {"role": "tool", "tool_call_id": "c1", "content": "12°"}
SHAPES: dict[str, tuple[list[dict[str, Any]], list[dict[str, Any]] | None]] = {
    "plain": ([SYSTEM, USER], None),
    "no system turn": ([USER], None),
    "two system turns": ([SYSTEM, {"role": "system", "content": "And briefly."}, USER], None),
    "a later system turn": ([SYSTEM, USER, {"role": "system", "content": "Now."}, USER], None),
    "developer": ([{"role": "developer", "content": "Obey."}, USER], None),
    "system and developer": ([SYSTEM, {"role": "developer", "content": "Obey."}, USER], None),
    "a late developer": ([SYSTEM, USER, {"role": "developer", "content": "Now obey."}, USER], None),
    "null content": ([SYSTEM, {"role": "user", "content": None}], None),
    "empty content": ([{"role": "system", "content": ""}, {"role": "user", "content": ""}], None),
    "outer space": ([SYSTEM, {"role": "user", "content": "  \n two words \t\n"}], None),
    "parts": ([SYSTEM, {"role": "user", "content": [TEXT, TEXT | {"text": "b "}]}], None),
    "no parts": ([SYSTEM, {"role": "user", "content": []}], None),
    "names": ([SYSTEM, USER | {"name": "ann"}, {"role": "assistant", "content": "yes", "name": "bot"}, USER], None),
    "turns": ([SYSTEM, USER, {"role": "assistant", "content": "one"}, USER], None),
    "thoughts": ([USER, {"role": "assistant", "content": "<think>\nhm\n</think>\n\none"}, USER], None),
    "what providers add": (
        [
            USER,
            {"role": "assistant", "content": "one", "refusal": None, "reasoning": "hm", "reasoning_content": "hm",
             "annotations": [], "tool_calls": None, "function_call": None},
            USER,
        ],
        None,
    ),
    "special tokens as text": ([SYSTEM, {"role": "user", "content": "<|im_end|> </s> {{ x }}"}], None),
    "tools": ([SYSTEM, USER], [TOOL]),
    "a bare tool": ([SYSTEM, USER], [BARE_TOOL, TOOL]),
    "a strict tool": ([SYSTEM, USER], [STRICT_TOOL]),
    "a call and its result": ([SYSTEM, USER, call('{"b": 1, "a": "Zürich"}'), RESULT], [TOOL]),
    "a call as streams give it": ([SYSTEM, USER, call('{"a": 1}', index=0), RESULT], [TOOL]),
    "a call without arguments": ([SYSTEM, USER, call(""), RESULT], [TOOL]),
    "a call that is no JSON": ([SYSTEM, USER, call('{"a": '), RESULT], [TOOL]),
    "a call that is no object": ([SYSTEM, USER, call("[1]"), RESULT], [TOOL]),
    "a result in parts": (
        [SYSTEM, USER, call("{}"), RESULT | {"content": [{"type": "text", "text": "12"}], "name": "look_up"}],
        [TOOL],
    ),
    "two calls": (
        [SYSTEM, USER, {**call("{}"), "tool_calls": [call("{}")["tool_calls"][0], call('{"a": 2}')["tool_calls"][0]]},
         RESULT, RESULT],
        [TOOL],
    ),
    "the vendor's line": (
        [{"role": "system", "content": "x-anthropic-billing-header: cch=1\nSort."}, USER], None),
    "an image": ([{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "data:,"}}]}], None),
}  # fmt: skip


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """vLLM's server, shown templates by each request."""
    folder = tmp_path_factory.mktemp("engine")
    model, port, log = model_folder(folder / "model", FAMILIES["chatml"]), free_port(), folder / "log"
    command = [sys.executable, "-m", "vllm.entrypoints.launchers.render.entry", "--model", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port), *template_flags(), "--trust-request-chat-template"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    deadline = time.monotonic() + START_S
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            while not _answers(client):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"vLLM did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.2)
            yield client
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health").is_success
    except httpx.TransportError:
        return False


def _engines(client: httpx.Client, template: str, messages: list[Any], tools: list[Any] | None) -> list[int] | None:
    """The ids that vLLM makes of what a student is sent; None where it refuses."""
    body = {"messages": [plain(message) for message in messages], "tools": tools, "chat_template": template}
    response = client.post("/tokenize", json=body)
    assert response.status_code in (200, 400), response.text
    return list(response.json()["tokens"]) if response.is_success else None


@pytest.mark.parametrize("family", FAMILIES)
def test_every_shape_becomes_the_engines_ids(family: str, engine: httpx.Client, tmp_path: Path) -> None:
    renderer = Renderer(model_folder(tmp_path, FAMILIES[family]))
    rendered = 0
    for name, (messages, tools) in SHAPES.items():
        expected = _engines(engine, FAMILIES[family], messages, tools)
        refusal = renderer.refusal(messages, tools)
        if refusal is not None:
            # We refuse what the engine does, and what it would answer without having seen the tools.
            assert expected is None or "drops the tool" in refusal, (name, refusal)
            continue
        ours = renderer.prompt(messages, tools)
        assert ours == expected, (name, "".join(renderer.pieces(ours)), "".join(renderer.pieces(expected or [])))
        rendered += 1
    assert rendered >= 10


def test_the_server_that_samples_and_serves_is_started_with_the_same_flags() -> None:
    from rl.rollout.server import VllmServer

    server = VllmServer(ServerSpec(Path("model"), Path("log")))
    try:
        flags = " ".join(server._flags())
        assert " ".join(template_flags()) in flags
    finally:
        server.close()
