"""Responses and Messages in a stream are the answers that would have come whole, whatever is in them."""

from __future__ import annotations

from typing import Any

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.capture.assemble import received
from tests.gateway.clients import messages, responses
from tests.gateway.property.test_assembly import SOME, TEXT
from tests.gateway.property.test_sse import CUTS

ARGUMENTS = st.dictionaries(TEXT, TEXT | st.integers(-(2**50), 2**50) | st.booleans(), max_size=3)
CALLS = st.builds(
    lambda name, made: {
        "type": "function_call", "id": f"fc_{name}", "call_id": f"call_{name}", "status": "completed", "name": name,
        "arguments": msgspec.json.encode(made).decode(),
    },
    SOME, ARGUMENTS,
)  # fmt: skip
TEXT_BLOCK = TEXT.map(lambda text: {"type": "text", "text": text})
TOOL_BLOCK = st.builds(
    lambda name, made: {"type": "tool_use", "id": f"toolu_{name}", "name": name, "input": made}, SOME, ARGUMENTS
)


@given(st.lists(SOME.map(responses.message) | CALLS, min_size=1, max_size=4), CUTS)
def test_a_streamed_response_is_the_whole_one(items: list[dict[str, Any]], cuts: list[int]) -> None:
    made = responses.made("resp_1", items, {"metadata": {"a": "b"}})
    stream = b"".join(responses.events(made))
    answer = received(stream, None, "responses")
    assert (answer.response, answer.whole) == (made, True)
    direct = received(msgspec.json.encode(made), None, "responses")
    assert (direct.choices, direct.finish_reason) == (answer.choices, answer.finish_reason)
    for cut in cuts:
        assert not received(stream[: cut % (stream.rindex(b"event: ") + 1)], None, "responses").whole


@given(st.lists(TEXT_BLOCK | TOOL_BLOCK, min_size=1, max_size=4), CUTS)
def test_a_streamed_message_is_the_whole_one(blocks: list[dict[str, Any]], cuts: list[int]) -> None:
    usage = {"input_tokens": 3, "output_tokens": 4, "cache_read_input_tokens": 2}
    made = {"id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": blocks,
            "stop_reason": "end_turn", "stop_sequence": None, "usage": usage}  # fmt: skip
    stream = b"".join(messages.events(made))
    answer = received(stream, None, "messages")
    assert (answer.response, answer.whole) == (made, True)
    direct = received(msgspec.json.encode(made), None, "messages")
    assert (direct.choices, direct.finish_reason) == (answer.choices, answer.finish_reason)
    for cut in cuts:
        assert not received(stream[: cut % (stream.rindex(b"event: ") + 1)], None, "messages").whole
