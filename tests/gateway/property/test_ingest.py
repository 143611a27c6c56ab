"""What the writer reads out of a call, whatever it asked and was answered: no fault, and only text a database takes."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.capture import ingest
from gateway.capture.record import Record
from gateway.core import jsontext
from tests.gateway.capture.test_record import envelope
from tests.gateway.clients import messages, provider, responses
from tests.gateway.clients.shapes import USAGE
from tests.gateway.property.test_assembly import NONSENSE
from tests.gateway.world import Reply, event

PLACE = {"type": "object", "properties": {"city": {"type": "string"}}}
TOOL = {"name": "look_up", "description": "x", "parameters": PLACE}
CHAT = {"model": "gpt-4o", "messages": [{"role": "system", "content": "s"}, {"role": "user", "content": "hi"}],
        "tools": [{"type": "function", "function": TOOL}], "metadata": {"task": "t"}}  # fmt: skip
COMPLETION = {"model": "gpt-4o", "prompt": "hi"}
RESPONSE = {"model": "gpt-4o", "instructions": "s", "tools": [{"type": "function", **TOOL}],
            "input": [{"role": "user", "content": [{"type": "input_text", "text": "hi"}]}]}  # fmt: skip
MESSAGE = {"model": "claude", "max_tokens": 9, "system": [{"type": "text", "text": "s"}],
           "messages": [{"role": "user", "content": [{"type": "text", "text": "hi"}]}],
           "tools": [{"name": "look_up", "input_schema": PLACE}]}  # fmt: skip
SAID = {"chat.completions": CHAT, "completions": COMPLETION, "responses": RESPONSE, "messages": MESSAGE}


def answered(endpoint: str, request: dict[str, Any]) -> Reply:
    """What the provider of the clients' tests answers."""
    answers = {"chat.completions": provider.chat, "completions": provider.completions}
    if endpoint in answers:
        return answers[endpoint](request)
    dialect = responses if endpoint == "responses" else messages
    return dialect.answer(request, provider.whole)


@st.composite
def changed(draw: st.DrawFn, value: Any) -> Any:
    """The value with one thing somewhere in it replaced, dropped or doubled."""
    if isinstance(value, dict | list) and value and draw(st.integers(0, 4)):
        place = draw(st.sampled_from(sorted(value) if isinstance(value, dict) else range(len(value))))
        fresh = value.copy()
        what = draw(st.sampled_from(["deeper", "deeper", "deeper", "dropped", "replaced"]))
        if what == "dropped":
            del fresh[place]
        else:
            fresh[place] = draw(changed(value[place]) if what == "deeper" else NONSENSE)
        return fresh
    return draw(NONSENSE)


def values_of(found: ingest.Parsed) -> bytes:
    """Everything that is stored; fails where PostgreSQL would."""
    plain = {name: value for name, value in found.values.items() if not isinstance(value, bytes | datetime)}
    kept = {name: plain.pop(name) for name in ("request", "tags")}  # without escapes: PostgreSQL reads this JSON
    text = jsontext.encode(plain)
    for part in (text, msgspec.json.encode(kept)):
        assert b"\\u0000" not in part
        assert b"\\ud8" not in part
    return text


@pytest.mark.parametrize("endpoint", SAID)
@given(st.data(), st.booleans(), st.sampled_from(["question", "answer", "both", "neither"]))
def test_a_call_of_any_shape_is_read(endpoint: str, data: st.DataObject, stream: bool, what: str) -> None:
    request: Any = SAID[endpoint] | {"stream": stream, "stream_options": {"include_usage": stream}}
    pieces = b"".join(piece for piece in answered(endpoint, request).pieces if isinstance(piece, bytes))
    if what in ("answer", "both"):
        if stream:
            events = [msgspec.json.decode(line[6:]) for line in pieces.splitlines() if line.startswith(b"data: {")]
            pieces = b"".join(map(event, data.draw(changed(events).filter(lambda made: isinstance(made, list)))))
        else:
            pieces = jsontext.encode(data.draw(changed(msgspec.json.decode(pieces))))
    if what in ("question", "both"):
        request = data.draw(changed(request))
    record = Record(envelope(endpoint=endpoint, streamed=stream), jsontext.encode(request), pieces)
    found = ingest.parse(record)
    values_of(found)
    if what == "neither":
        assert found.values["complete"]
        assert found.values["trainable"]
        assert found.usage is not None
        assert found.values["finish_reason"] in ("stop", "tool_calls")


@pytest.mark.parametrize("number", [b"Infinity", b"NaN", b"1e999", b"-1", b"9" * 30, b"0.5", b"true", b'"20"'])
@pytest.mark.parametrize("endpoint", SAID)
def test_a_count_of_any_kind_is_survived(endpoint: str, number: bytes) -> None:
    (answer,) = answered(endpoint, SAID[endpoint]).pieces
    assert isinstance(answer, bytes)
    found = ingest.parse(Record(envelope(endpoint=endpoint), b"{}", answer.replace(b":20", b":" + number)))
    assert 0 <= found.values["prompt_tokens"] <= USAGE[0]
    assert found.values["completion_tokens"] == USAGE[1]


ENCODINGS = st.sampled_from([None, "gzip", "br"])


@given(st.sampled_from(sorted(SAID)), st.binary(max_size=200), st.binary(max_size=200), ENCODINGS)
def test_a_call_of_any_bytes_is_read(endpoint: str, request: bytes, response: bytes, encoding: str | None) -> None:
    made = envelope(endpoint=endpoint, request_encoding=encoding, response_encoding=encoding, error="a\0")
    values_of(ingest.parse(Record(made, request, response)))
