"""Owns reading tokens from an answer of any endpoint whose body is not kept. Pure functions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from gateway.capture.assemble import STREAM_STARTS
from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.core.sse import Events, data_of
from gateway.providers.spec import Usage
from gateway.providers.usage import usage_field, usage_of


def tokens_in(body: bytes, encoding: str | None) -> Usage:
    """The usage that an answer reports, in a stream the last one; zeros where it reports none."""
    try:
        clear = decompress(body, encoding)
    except ValueError:
        return Usage()
    return _in_stream(clear) if clear.lstrip().startswith(STREAM_STARTS) else _in_json(clear)


def _in_stream(body: bytes) -> Usage:
    events = Events()
    for event in reversed([*events.feed(body), events.rest()]):
        if b'"usage"' in event and (data := data_of(event)) is not None and (found := _in_json(data)) != Usage():
            return found
    return Usage()


def _in_json(body: bytes) -> Usage:
    if b'"usage"' not in body:
        return Usage()
    try:
        answer = jsontext.decode(body)
    except ValueError:
        return Usage()
    if not isinstance(answer, Mapping):
        return Usage()
    inner: Any = answer.get("response")  # the Responses API's last event holds the whole response
    return usage_of(inner if isinstance(inner, Mapping) and usage_field(inner) else answer)
