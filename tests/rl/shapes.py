"""Shapes of messages that apps send, and the check that vLLM makes the same ids of each as the renderer."""

from __future__ import annotations

from typing import Any

import httpx

from gateway.core.messages import plain
from rl.render import Renderer

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


def check_shapes(renderer: Renderer, engine: httpx.Client, template: str | None = None) -> int:
    """Every shape as a student is sent it; `template` in place of the engine's own. How many were rendered."""
    rendered = 0
    for name, (messages, tools) in SHAPES.items():
        expected = _engines(engine, template, messages, tools)
        refusal = renderer.refusal(messages, tools)
        if refusal is not None:
            # We refuse what the engine does, and what it would answer without having seen the tools.
            assert expected is None or "drops the tool" in refusal, (name, refusal)
            continue
        ours = renderer.prompt(messages, tools)
        assert ours == expected, (name, "".join(renderer.pieces(ours)), "".join(renderer.pieces(expected or [])))
        rendered += 1
    return rendered


def _engines(
    engine: httpx.Client, template: str | None, messages: list[Any], tools: list[Any] | None
) -> list[int] | None:
    """The ids that vLLM makes of the messages; None where it refuses them."""
    body: dict[str, Any] = {"messages": [plain(message) for message in messages], "tools": tools}
    response = engine.post("/tokenize", json=body | ({"chat_template": template} if template else {}))
    assert response.status_code in (200, 400), response.text
    return list(response.json()["tokens"]) if response.is_success else None
