"""What broke others on the wire: assembled streams equal the non-streamed form; what is not whole never seems so."""

from __future__ import annotations

from typing import Any

import msgspec
import pytest

from gateway.capture.answer import Answer
from gateway.capture.assemble import received
from gateway.core import jsontext
from tests.gateway.world import DONE, USAGE_CHUNK, chunk, event, stream_events


def of(*events: bytes) -> Answer:
    return received(b"".join(events), None)


def message(answer: Answer) -> dict[str, Any]:
    found = answer.choices[0]["message"]
    assert isinstance(found, dict)
    return found


def tool(arguments: str | None = None, name: str | None = None, **fields: Any) -> bytes:
    function = {k: v for k, v in (("name", name), ("arguments", arguments)) if v is not None}
    return event(chunk({"tool_calls": [{**fields, "function": function}]}))


def test_text_usage_and_top_fields() -> None:
    answer = of(*stream_events("Hel", "lo"))
    assert answer.whole
    assert answer.response == {
        "id": "chatcmpl-1",
        "created": 1,
        "model": "gpt-4o-2024-08-06",
        "object": "chat.completion",
        "choices": [
            {
                "index": 0,
                "message": {"role": "assistant", "content": "Hello"},
                "logprobs": None,
                "finish_reason": "stop",
            }
        ],
        "usage": USAGE_CHUNK["usage"],
    }


@pytest.mark.parametrize("end", ["\n", "\r\n", "\r"])
def test_line_ends_comments_and_other_fields(end: str) -> None:
    text = "".join(e.decode() for e in [b": ping\n\n", b"event: x\nid: 3\nretry: 1\n\n", *stream_events("a", "b")])
    answer = received(text.replace("\n", end).encode(), None)
    assert answer.whole
    assert message(answer)["content"] == "ab"


def test_data_over_several_lines() -> None:
    pretty = msgspec.json.format(msgspec.json.encode(chunk({"content": "a"}, "stop")), indent=1).replace(
        b"\n", b"\ndata: "
    )
    assert of(b"data: " + pretty + b"\n\n", DONE).whole


def test_content_stays_null_when_only_tools_are_called() -> None:
    answer = of(tool("", "f", index=0, id="a"), event(chunk({}, "tool_calls")), DONE)
    assert message(answer)["content"] is None


PARALLEL = [
    {"type": "function", "id": "a", "function": {"name": "f", "arguments": '{"x":1}'}},
    {"type": "function", "id": "b", "function": {"name": "g", "arguments": '{"y":2}'}},
]


@pytest.mark.parametrize(
    "events",
    [
        # as OpenAI does it
        [tool("", "f", index=0, id="a"), tool('{"x"', index=0), tool("", "g", index=1, id="b"), tool('{"y"', index=1),
         tool(":1}", index=0), tool(":2}", index=1)],
        # the same index for every call
        [tool('{"x":1}', "f", index=0, id="a"), tool('{"y":2}', "g", index=0, id="b")],
        # no index at all, in whole and in parts
        [tool('{"x":1}', "f", id="a"), tool('{"y":2}', "g", id="b")],
        [tool('{"x"', "f", id="a"), tool(":1}"), tool('{"y"', "g", id="b"), tool(":2}")],
        # the id repeated in every delta
        [tool('{"x"', "f", index=0, id="a"), tool(":1}", index=0, id="a"), tool('{"y":2}', "g", index=1, id="b")],
        # the name repeated in every delta
        [tool('{"x"', "f", index=0, id="a"), tool(":1}", "f", index=0), tool('{"y":2}', "g", index=1, id="b")],
    ],
)  # fmt: skip
def test_parallel_tool_calls_however_they_are_numbered(events: list[bytes]) -> None:
    answer = of(*events, event(chunk({}, "tool_calls")), DONE)
    assert message(answer)["tool_calls"] == PARALLEL
    assert answer.whole


def test_refusal_reasoning_and_unknown_fields() -> None:
    answer = of(
        event(chunk({"reasoning_content": "hm"})),
        event(chunk({"reasoning_content": "m", "reasoning": "x"})),
        event(chunk({"refusal": "I ca"})),
        event(chunk({"refusal": "n't"})),
        event(chunk({"annotations": [1]})),
        event(chunk({"annotations": [2]})),
        event(chunk({}, "stop")),
        DONE,
    )
    assert message(answer) == {
        "role": "assistant", "content": None, "reasoning_content": "hmm", "reasoning": "x", "refusal": "I can't",
        "annotations": [1, 2],
    }  # fmt: skip


def test_logprobs_do_not_hide_the_finish_reason() -> None:
    def with_logprobs(token: str, finish: str | None) -> bytes:
        piece = chunk({"content": token}, finish)
        piece["choices"][0]["logprobs"] = {"content": [{"token": token, "logprob": -0.5}], "refusal": None}
        return event(piece)

    answer = of(with_logprobs("a", None), with_logprobs("b", "stop"), DONE)
    assert [t["token"] for t in answer.choices[0]["logprobs"]["content"]] == ["a", "b"]
    assert answer.finish_reason == "stop"


def test_usage_on_every_chunk_counts_once() -> None:
    events = [event(chunk({"content": "a"}, usage={"completion_tokens": n, "prompt_tokens": 5})) for n in (1, 2, 3)]
    answer = of(*events, event(chunk({}, "stop")), DONE)
    assert (answer.response or {})["usage"]["completion_tokens"] == 3


def test_an_emoji_cut_in_two_is_one_again() -> None:
    first, second = (b'data: {"choices":[{"index":0,"delta":{"content":"\\u%s"}}]}\n\n' % h for h in (b"d83d", b"de00"))
    answer = of(first, second, event(chunk({}, "stop")), DONE)
    assert jsontext.decode(jsontext.encode(answer.response))["choices"][0]["message"]["content"] == "\U0001f600"


@pytest.mark.parametrize(
    "events",
    [
        [],
        [DONE],
        [event(chunk({"content": "a"})), DONE],
        stream_events("a")[:-1],
        stream_events("a")[:2],
        [event(chunk({"content": "a"})), event({"error": {"message": "boom"}})],
        [event(chunk({"content": "a"}, "stop")), event({"error": {"message": "boom"}}), DONE],
        [event(b"{broken"), event(chunk({"content": "a"}, "stop")), DONE],
    ],
)
def test_what_is_not_whole_is_never_whole(events: list[bytes]) -> None:
    assert not of(*events).whole


@pytest.mark.parametrize(
    "body", [b"", b"<html>", b"[]", b'{"error":"x"}', b'{"choices":[]}', b'{"choices":[{}],"error":{}} x']
)
def test_bodies_that_are_no_answer(body: bytes) -> None:
    assert not received(body, None).whole


def test_an_encoding_we_cannot_read() -> None:
    answer = received(b"\x1f\x8b", "br")
    assert (answer.whole, answer.response) == (False, None)
    assert "br" in (answer.error or "")
