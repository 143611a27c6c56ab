"""Fingerprints: one shape all year, another when the job changes; hashes that do not depend on how it was written."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.tasks.fingerprint import conversation_hash, fingerprint, input_hash, system_text

TOOLS = [{"type": "function", "function": {"name": "f", "parameters": {"a": 1, "b": 2}}}]


def body(system: Any = "You sort tickets.", user: Any = "hi", **fields: Any) -> dict[str, Any]:
    messages = [] if system is None else [{"role": "system", "content": system}]
    return {"model": "m", "messages": [*messages, {"role": "user", "content": user}], **fields}


def test_neither_prompt_nor_tools_is_no_shape() -> None:
    assert fingerprint(body(None)) is None
    assert fingerprint(body("  ")) is None
    assert fingerprint({}) is None
    assert fingerprint({"messages": "no list"}) is None
    assert fingerprint(body(None, tools=TOOLS)) is not None


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("Today is 2026-01-05.", "Today is 2025-12-31."),
        ("Now: 2026-01-05T10:11:12.123Z", "Now: 2026-01-05 09:00:00+02:00"),
        ("Order 17 of 20", "Order 3 of 20000"),
        ("Sort  the\n\nticket ", "Sort the ticket"),
    ],
)
def test_what_changes_with_every_call_is_collapsed(one: str, other: str) -> None:
    assert fingerprint(body(one)) == fingerprint(body(other))


@pytest.mark.parametrize(
    "other",
    [body("You sort letters."), body(tools=TOOLS), body(response_format={"type": "json_object"}), body(None)],
)
def test_another_job_has_another_shape(other: dict[str, Any]) -> None:
    assert fingerprint(body()) != fingerprint(other)


def test_what_does_not_make_the_shape() -> None:
    shape = fingerprint(body())
    later = body()
    later["messages"] += [{"role": "assistant", "content": "x"}, {"role": "system", "content": "be brief"}]
    developer = body()
    developer["messages"][0]["role"] = "developer"
    for same in (
        body(user="other"), body(temperature=1), body([{"type": "text", "text": "You sort tickets."}]),
        body(response_format={"type": "text"}), body(tools=[]), later, developer,
    ):  # fmt: skip
        assert fingerprint(same) == shape


def test_key_order_does_not_matter() -> None:
    other = [{"function": {"parameters": {"b": 2, "a": 1}, "name": "f"}, "type": "function"}]
    assert fingerprint(body(tools=TOOLS)) == fingerprint(body(tools=other))
    assert input_hash(body(tools=TOOLS)) == input_hash(body(tools=other))


def test_the_input_is_everything_said() -> None:
    assert input_hash(body()) != input_hash(body(user="other"))
    assert input_hash(body("2026-01-05")) != input_hash(body("2026-01-06")), "only shapes collapse dates"
    assert input_hash(body()) == input_hash(body(user=[{"type": "text", "text": "hi"}], temperature=2, model="x"))


def test_turns_of_a_conversation_share_their_beginning() -> None:
    first = body()
    second = body()
    second["messages"] += [{"role": "assistant", "content": "x"}, {"role": "user", "content": "y"}]
    assert conversation_hash(first) == conversation_hash(second)
    assert conversation_hash(first) != conversation_hash(body(user="other"))


def test_lone_surrogates_are_hashed_too() -> None:
    assert fingerprint(body("\ud800 x")) is not None
    assert input_hash(body(user="\ud800")) != input_hash(body(user="\ud801"))


def test_system_text_joins_the_leading_messages() -> None:
    leading = [{"role": "system", "content": "a"}, {"role": "developer", "content": [{"type": "text", "text": "b"}]}]
    assert system_text({"messages": [*leading, {"role": "user", "content": "c"}]}) == "a\n\nb"
    assert system_text({"messages": [{"role": "user", "content": "c"}, *leading]}) == ""
