"""Responses, Messages and Completions: streams become the non-streamed form, and say in a chat's form what they say."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.capture.answer import Answer
from gateway.capture.assemble import received
from gateway.capture.dialects import dialect_of
from gateway.providers.usage import usage_of
from gateway.tasks.fingerprint import fingerprint, input_hash
from tests.gateway.world import DONE, event


def named(*events: dict[str, Any]) -> bytes:
    return b"".join(b"event: " + e["type"].encode() + b"\n" + event(e) for e in events)


def read(endpoint: str, *events: dict[str, Any]) -> Answer:
    return received(named(*events), None, endpoint)


START = {
    "type": "message_start",
    "message": {
        "id": "msg_1", "type": "message", "role": "assistant", "model": "claude", "content": [], "stop_reason": None,
        "stop_sequence": None,
        "usage": {
            "input_tokens": 10, "cache_read_input_tokens": 5, "cache_creation_input_tokens": 2, "output_tokens": 1,
        },
    },
}  # fmt: skip
STOP = {"type": "message_stop"}
OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}


def block(index: int, start: dict[str, Any], *deltas: dict[str, Any]) -> list[dict[str, Any]]:
    return [
        {"type": "content_block_start", "index": index, "content_block": start},
        *({"type": "content_block_delta", "index": index, "delta": delta} for delta in deltas),
        {"type": "content_block_stop", "index": index},
    ]


def ends(reason: str, output_tokens: int = 20) -> dict[str, Any]:
    delta = {"stop_reason": reason, "stop_sequence": None}
    return {"type": "message_delta", "delta": delta, "usage": {"output_tokens": output_tokens}}


def test_a_message_with_thinking_text_and_a_tool() -> None:
    thinking = block(
        0, {"type": "thinking", "thinking": "", "signature": ""},
        {"type": "thinking_delta", "thinking": "Let "}, {"type": "thinking_delta", "thinking": "me see"},
        {"type": "signature_delta", "signature": "abc="},
    )  # fmt: skip
    text = block(
        1, {"type": "text", "text": ""},
        {"type": "text_delta", "text": "It is "}, {"type": "text_delta", "text": "late"},
        {"type": "citations_delta", "citation": {"cited_text": "late"}},
    )  # fmt: skip
    tool = block(
        2, {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {}},
        {"type": "input_json_delta", "partial_json": ""}, {"type": "input_json_delta", "partial_json": '{"zone": "U'},
        {"type": "input_json_delta", "partial_json": 'TC"}'},
    )  # fmt: skip
    bare = block(3, {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}})
    ping = {"type": "ping"}
    answer = read("messages", START, ping, *thinking, *text, *tool, *bare, ends("tool_use"), STOP)
    assert (answer.whole, answer.error) == (True, None)
    assert answer.response is not None
    assert answer.response["content"] == [
        {"type": "thinking", "thinking": "Let me see", "signature": "abc="},
        {"type": "text", "text": "It is late", "citations": [{"cited_text": "late"}]},
        {"type": "tool_use", "id": "toolu_1", "name": "clock", "input": {"zone": "UTC"}},
        {"type": "tool_use", "id": "toolu_2", "name": "now", "input": {}},
    ]
    (choice,) = answer.choices
    assert choice["finish_reason"] == "tool_calls"
    assert choice["message"]["content"] == "It is late"
    assert [call["function"]["arguments"] for call in choice["message"]["tool_calls"]] == ['{"zone":"UTC"}', "{}"]
    usage = usage_of(answer.response)
    assert (usage.prompt, usage.cached, usage.completion) == (17, 5, 20), "what is cached is apart there, and paid once"


@pytest.mark.parametrize(
    "events",
    [
        [START, *block(0, {"type": "text", "text": ""}, {"type": "text_delta", "text": "half"})],
        [START, *block(0, {"type": "text", "text": "all"}), ends("end_turn")],
        [START, *block(0, {"type": "text", "text": "all"}), STOP],
        [START, OVERLOADED, ends("end_turn"), STOP],
    ],
    ids=["cut", "no-stop", "no-reason", "error"],
)  # fmt: skip
def test_a_message_that_is_not_whole(events: list[dict[str, Any]]) -> None:
    answer = read("messages", *events)
    assert not answer.whole
    assert answer.error == ("Overloaded" if events[1]["type"] == "error" else None)


def test_a_refusal_is_whole_and_says_why() -> None:
    answer = read("messages", START, *block(0, {"type": "text", "text": "No."}), ends("refusal"), STOP)
    assert (answer.whole, answer.finish_reason) == (True, "content_filter")


RESPONSE = {
    "id": "resp_1", "object": "response", "status": "completed", "error": None, "model": "gpt-4o",
    "output": [
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": "Hello"}]},
        {"type": "function_call", "call_id": "call_1", "name": "clock", "arguments": "{}"},
    ],
}  # fmt: skip


def test_a_response_is_what_its_last_event_says() -> None:
    created = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
    answer = read("responses", created, {"type": "response.completed", "response": RESPONSE})
    assert (answer.whole, answer.response, answer.finish_reason) == (True, RESPONSE, "tool_calls")
    assert answer.choices[0]["message"]["content"] == "Hello"
    assert answer.choices == dialect_of("responses").whole(RESPONSE).choices


def test_a_response_that_is_cut_is_kept_as_far_as_it_came() -> None:
    created = {"type": "response.created", "response": {"id": "resp_1", "status": "in_progress", "output": []}}
    message = {"type": "message", "role": "assistant", "content": []}
    call = {"type": "function_call", "call_id": "c", "name": "clock", "arguments": ""}
    deltas = [
        {"type": "response.output_item.added", "output_index": 0, "item": message},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "Hel"},
        {"type": "response.output_text.delta", "output_index": 0, "content_index": 0, "delta": "lo"},
        {"type": "response.output_item.added", "output_index": 1, "item": call},
        {"type": "response.function_call_arguments.delta", "output_index": 1, "delta": '{"zo'},
    ]
    answer = read("responses", created, *deltas)
    assert (answer.whole, answer.finished) == (False, False)
    assert answer.response is not None
    assert answer.response["output"][0]["content"] == [{"type": "output_text", "text": "Hello"}]
    assert answer.response["output"][1]["arguments"] == '{"zo'


@pytest.mark.parametrize(
    ("last", "whole", "reason", "error"),
    [
        ({"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}, True, "length", None),
        ({"status": "incomplete", "incomplete_details": {"reason": "content_filter"}}, True, "content_filter", None),
        ({"status": "failed", "error": {"code": "server_error", "message": "It broke"}}, False, None, "It broke"),
        ({"status": "queued", "output": []}, False, None, None),
    ],
)
def test_how_responses_end(last: dict[str, Any], whole: bool, reason: str | None, error: str | None) -> None:
    response = RESPONSE | last
    answer = dialect_of("responses").whole(response)
    assert (answer.whole, answer.finish_reason, answer.error) == (whole, reason, error)
    streamed = read("responses", {"type": f"response.{last['status']}", "response": response})
    assert (streamed.whole, streamed.finish_reason, streamed.error) == (whole, reason, error)


def test_an_error_event_in_a_response() -> None:
    answer = read("responses", {"type": "error", "code": "rate_limit", "message": "Slow down"})
    assert (answer.whole, answer.error) == (False, "Slow down")


def test_completions() -> None:
    chunks: list[dict[str, Any]] = [
        {"id": "c", "object": "text_completion", "choices": [{"index": 0, "text": "Hel", "finish_reason": None}]},
        {"id": "c", "choices": [{"index": 1, "text": "Bye", "logprobs": {"tokens": ["Bye"]}, "finish_reason": "stop"}]},
        {"id": "c", "choices": [{"index": 0, "text": "lo", "finish_reason": "stop"}], "usage": None},
        {"id": "c", "choices": [], "usage": {"prompt_tokens": 3, "completion_tokens": 2}},
    ]
    body = b"".join(map(event, chunks))
    assert not received(body, None, "completions").whole, "without [DONE] it is not"
    answer = received(body + DONE, None, "completions")
    assert answer.whole
    assert answer.response == {
        "id": "c", "object": "text_completion", "usage": {"prompt_tokens": 3, "completion_tokens": 2},
        "choices": [
            {"index": 0, "text": "Hello", "logprobs": None, "finish_reason": "stop"},
            {"index": 1, "text": "Bye", "logprobs": {"tokens": ["Bye"]}, "finish_reason": "stop"},
        ],
    }  # fmt: skip
    assert [choice["message"]["content"] for choice in answer.choices] == ["Hello", "Bye"]


PARAMETERS = {"type": "object", "properties": {"zone": {"type": "string"}}}
SCHEMA = {"name": "answer", "schema": {"type": "object"}, "strict": True}
CHAT = {
    "messages": [
        {"role": "system", "content": "You tell the time."},
        {"role": "user", "content": "What time is it?"},
        {"role": "assistant", "content": None, "tool_calls": [
            {"id": "call_1", "type": "function", "function": {"name": "clock", "arguments": '{"zone":"UTC"}'}},
        ]},
        {"role": "tool", "tool_call_id": "call_1", "content": "noon"},
    ],
    "tools": [{"type": "function", "function": {"name": "clock", "description": "Time", "parameters": PARAMETERS}}],
}  # fmt: skip
AS_RESPONSE = {
    "instructions": "You tell the time.",
    "input": [
        {"role": "user", "content": [{"type": "input_text", "text": "What time is it?"}]},
        {"type": "reasoning", "id": "rs_1", "summary": []},
        {"type": "function_call", "call_id": "call_1", "name": "clock", "arguments": '{"zone":"UTC"}'},
        {"type": "function_call_output", "call_id": "call_1", "output": "noon"},
    ],
    "tools": [{"type": "function", "name": "clock", "description": "Time", "parameters": PARAMETERS}],
}
AS_MESSAGE = {
    "system": [{"type": "text", "text": "You tell the time.", "cache_control": {"type": "ephemeral"}}],
    "messages": [
        {"role": "user", "content": [{"type": "text", "text": "What time is it?"}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "Hm", "signature": "x"},
            {"type": "tool_use", "id": "call_1", "name": "clock", "input": {"zone": "UTC"}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "call_1", "content": [{"type": "text", "text": "noon"}]},
        ]},
    ],
    "tools": [{"name": "clock", "description": "Time", "input_schema": PARAMETERS}],
}  # fmt: skip


@pytest.mark.parametrize(("endpoint", "request_"), [("responses", AS_RESPONSE), ("messages", AS_MESSAGE)])
def test_the_same_job_is_the_same_in_every_dialect(endpoint: str, request_: dict[str, Any]) -> None:
    chat = dialect_of(endpoint).as_chat(request_)
    assert fingerprint(chat) == fingerprint(CHAT)
    assert input_hash(chat) == input_hash(CHAT)


def test_the_same_format_is_the_same_in_every_dialect() -> None:
    wanted = {"type": "json_schema", "json_schema": SCHEMA}
    responses = dialect_of("responses").as_chat({"text": {"format": {"type": "json_schema", **SCHEMA}}})
    messages = dialect_of("messages").as_chat({"output_config": {"format": {"type": "json_schema", **SCHEMA}}})
    assert responses["response_format"] == messages["response_format"] == wanted


def test_what_the_provider_remembers_tells_two_requests_apart() -> None:
    as_chat = dialect_of("responses").as_chat
    alone, later = as_chat({"input": "Yes"}), as_chat({"input": "Yes", "previous_response_id": "resp_1"})
    assert input_hash(alone) != input_hash(later)


@pytest.mark.parametrize("endpoint", ["responses", "messages", "completions"])
@pytest.mark.parametrize("value", [None, 1, "x", [], [1, None], {"type": 3}, [{"type": 3, "content": 4}]])
def test_malformed_requests_are_read_as_far_as_they_go(endpoint: str, value: Any) -> None:
    names = ("system", "instructions", "messages", "input", "tools", "text", "output_config", "prompt")
    chat = dialect_of(endpoint).as_chat(dict.fromkeys(names, value))
    assert input_hash(chat)
