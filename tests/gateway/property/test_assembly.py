"""An answer cut into deltas is the same answer again, however a provider cuts and numbers them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.capture.assemble import received
from tests.gateway.world import event

TEXT = st.text(st.characters(exclude_categories=["Cs"]), max_size=15)
SOME = TEXT.filter(bool)
USAGE = {"prompt_tokens": 7, "completion_tokens": 5, "total_tokens": 12}
TOP = {"id": "chatcmpl-9", "created": 5, "model": "gpt-4o", "service_tier": "default"}


@st.composite
def messages(draw: st.DrawFn) -> dict[str, Any]:
    message: dict[str, Any] = {"role": "assistant", "content": draw(st.none() | SOME)}
    for name in ("refusal", "reasoning_content", "reasoning"):
        if draw(st.booleans()):
            message[name] = draw(SOME)
    calls = [
        {"id": f"call_{i}", "type": "function", "function": {"name": draw(SOME), "arguments": draw(TEXT)}}
        for i in range(draw(st.integers(0, 3)))
    ]
    return message | ({"tool_calls": calls} if calls else {})


@st.composite
def choices(draw: st.DrawFn, index: int) -> dict[str, Any]:
    message = draw(messages())
    tokens = [{"token": token, "logprob": -0.5, "top_logprobs": []} for token in draw(st.lists(TEXT, max_size=4))]
    logprobs = {"content": tokens, "refusal": None} if tokens else None
    reason = "tool_calls" if "tool_calls" in message else "stop"
    return {"index": index, "message": message, "logprobs": logprobs, "finish_reason": reason}


def parts(draw: st.DrawFn, text: str) -> list[str]:
    bounds = [0, *sorted(draw(st.lists(st.integers(0, len(text)), max_size=3))), len(text)]
    return [text[a:b] for a, b in pairwise(bounds)]


def tool_deltas(draw: st.DrawFn, calls: list[dict[str, Any]]) -> list[list[dict[str, Any]]]:
    """The deltas of each call, in a provider's manner: indexed, all under one index, or without any."""
    manner = draw(st.sampled_from(["indexed", "same", "missing"]))
    repeats_id, repeats_name = draw(st.booleans()), draw(st.booleans())
    found = []
    for number, call in enumerate(calls):
        index = {"indexed": {"index": number}, "same": {"index": 0}, "missing": {}}[manner]
        pieces = parts(draw, call["function"]["arguments"])
        first = {**index, "id": call["id"], "type": "function"}
        deltas = [first | {"function": {"name": call["function"]["name"], "arguments": pieces[0]}}]
        for piece in pieces[1:]:
            function = {"arguments": piece} | ({"name": call["function"]["name"]} if repeats_name else {})
            deltas.append(index | ({"id": call["id"]} if repeats_id else {}) | {"function": function})
        found.append(deltas)
    # Only where every delta says which call it belongs to can calls be told apart when they come by turns.
    if manner == "indexed" and draw(st.booleans()):
        return [[delta for turn in by_turns(found) for delta in turn]]
    return found


def by_turns(lists: list[list[Any]]) -> Iterator[list[Any]]:
    for position in range(max(map(len, lists), default=0)):
        yield [each[position] for each in lists if position < len(each)]


def deltas_of(draw: st.DrawFn, choice: dict[str, Any]) -> list[dict[str, Any]]:
    """One choice as the choices of its chunks: texts in order, tools after them, the reason last."""
    message = choice["message"]
    deltas: list[dict[str, Any]] = [{"role": "assistant"} | ({"content": None} if draw(st.booleans()) else {})]
    for name in draw(st.permutations(["content", "refusal", "reasoning_content", "reasoning"])):
        if message.get(name) is not None:
            deltas += [{name: part} for part in parts(draw, message[name])]
    for calls in tool_deltas(draw, message.get("tool_calls", [])):
        if draw(st.booleans()):
            deltas += [{"tool_calls": [delta]} for delta in calls]
        else:
            deltas.append({"tool_calls": calls})
    pieces = [{"index": choice["index"], "delta": delta, "logprobs": None, "finish_reason": None} for delta in deltas]
    for token in (choice["logprobs"] or {}).get("content", []):
        at = draw(st.integers(0, len(pieces) - 1))
        pieces.insert(at, {**pieces[at], "delta": {}, "logprobs": {"content": [token], "refusal": None}})
    ordered = [p["logprobs"]["content"][0] for p in pieces if p["logprobs"]]
    choice["logprobs"] = {"content": ordered} if ordered else None
    pieces.append({"index": choice["index"], "delta": {}, "logprobs": None, "finish_reason": choice["finish_reason"]})
    return pieces


@st.composite
def answers(draw: st.DrawFn) -> tuple[dict[str, Any], list[dict[str, Any]]]:
    """A whole answer, and the chunks that it may have come in."""
    given_choices = [draw(choices(index)) for index in range(draw(st.integers(1, 3)))]
    waiting = [deltas_of(draw, choice) for choice in given_choices]
    chunks = []
    while any(waiting):
        number = draw(st.sampled_from([n for n, left in enumerate(waiting) if left]))
        chunks.append({**TOP, "object": "chat.completion.chunk", "choices": [waiting[number].pop(0)]})
    if draw(st.booleans()):
        chunks.append({**TOP, "choices": [], "usage": USAGE})
    else:
        chunks[-1]["usage"] = USAGE
    return {**TOP, "object": "chat.completion", "choices": given_choices, "usage": USAGE}, chunks


@given(answers(), st.sampled_from([b"", b"\xef\xbb\xbf", b": ping\n\n", b"\n"]))
def test_the_streamed_answer_is_the_whole_one(made: tuple[dict[str, Any], list[dict[str, Any]]], first: bytes) -> None:
    whole, chunks = made
    stream = first + b"".join(map(event, chunks)) + event(b"[DONE]")
    answer = received(stream, None)
    assert answer.response == whole
    assert answer.whole
    direct = received(msgspec.json.encode(whole), None)
    assert (direct.response, direct.whole, direct.finish_reason) == (whole, True, answer.finish_reason)


@given(answers(), st.integers(0, 10_000))
def test_a_stream_cut_anywhere_before_its_end_is_never_whole(
    made: tuple[dict[str, Any], list[dict[str, Any]]], at: int
) -> None:
    stream = b"".join(map(event, made[1])) + b"data: [DONE]"
    assert not received(stream[: at % len(stream)], None).whole


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | TEXT,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
    max_leaves=5,
)
FIELDS = st.sampled_from(
    ["choices", "delta", "message", "content", "tool_calls", "function", "name", "arguments", "index", "id", "logprobs",
     "finish_reason", "usage", "error", "model", "x_groq", "function_call", "refusal", "role", "prompt_tokens"]
)  # fmt: skip
NONSENSE = st.recursive(JSON, lambda inner: st.dictionaries(FIELDS, inner, max_size=5) | st.lists(inner, max_size=3))


@given(st.lists(NONSENSE | st.fixed_dictionaries({"choices": st.lists(NONSENSE, max_size=2)})))
def test_events_of_any_shape_are_survived(values: list[Any]) -> None:
    stream = b"".join(map(event, values)) + event(b"[DONE]")
    answer = received(stream, None)
    assert isinstance(answer.whole, bool)
    assert all(isinstance(choice, dict) for choice in answer.choices)
    answer.finished, answer.finish_reason  # noqa: B018 - neither may raise
