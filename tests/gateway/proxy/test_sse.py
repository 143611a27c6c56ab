"""Changing a stream as it passes: the same result wherever it was cut, and not a byte more changed than meant."""

from __future__ import annotations

from itertools import pairwise

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.sse import Events, data_of
from gateway.proxy.sse import DoneWatch, Rewriter
from tests.gateway.world import DONE, USAGE_CHUNK, chunk, event, stream_events

NOISE = b": ping\r\n\r\nevent: x\ndata: {}\n\n\n\n: keepalive\n\n"
STREAM = NOISE + b"".join(stream_events("h\u00e9", 'data: [DONE]\n\n"usage"', "\U0001f600"))
STRIPPED = STREAM.replace(event(USAGE_CHUNK), b"")


def pieces_of(whole: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(c % (len(whole) + 1) for c in cuts), len(whole)]
    return [whole[a:b] for a, b in pairwise(bounds)]


def passed(rewriter: Rewriter, pieces: list[bytes]) -> bytes:
    return b"".join([rewriter.feed(p) for p in pieces]) + rewriter.rest()


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_events_joined_are_the_stream_again(cuts: list[int]) -> None:
    events = Events()
    found = [e for p in pieces_of(STREAM, cuts) for e in events.feed(p)] + [events.rest()]
    assert b"".join(found) == STREAM
    whole = Events()
    assert found == [*whole.feed(STREAM), whole.rest()]


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_the_usage_chunk_is_stripped_and_nothing_else(cuts: list[int]) -> None:
    assert passed(Rewriter(strip_usage=True), pieces_of(STREAM, cuts)) == STRIPPED
    assert passed(Rewriter(strip_usage=False), pieces_of(STREAM, cuts)) == STREAM


@pytest.mark.parametrize("size", [1, 2, 3])
def test_byte_by_byte(size: int) -> None:
    pieces = [STREAM[i : i + size] for i in range(0, len(STREAM), size)]
    assert passed(Rewriter(strip_usage=True), pieces) == STRIPPED
    watch = DoneWatch()
    seen = [watch.seen(p) for p in pieces]
    assert b"".join(pieces[: seen.index(True) + 1]).rstrip(b"\n").endswith(b"\n\ndata: [DONE]")


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_another_model_name(cuts: list[int]) -> None:
    got = passed(Rewriter(strip_usage=True, model='my "model"'), pieces_of(STREAM, cuts))
    events = Events()
    data = [d for d in map(data_of, events.feed(got)) if d is not None and d.startswith(b'{"id"')]
    assert {msgspec.json.decode(d)["model"] for d in data} == {'my "model"'}
    assert got.replace(b'"my \\"model\\""', b'"gpt-4o-2024-08-06"') == STRIPPED


@given(st.lists(st.integers(0, 10_000), max_size=40))
def test_done_is_noticed_with_the_piece_that_completes_it(cuts: list[int]) -> None:
    watch, pieces = DoneWatch(), pieces_of(STREAM, cuts)
    first = [watch.seen(p) for p in pieces].index(True)
    line = b"\n\ndata: [DONE]"
    assert line in b"".join(pieces[: first + 1])
    assert line not in b"".join(pieces[:first])
    assert b"data: [DONE]" in STREAM[: STREAM.index(event(USAGE_CHUNK))], "said in the content, and not taken for it"


def test_a_stream_that_begins_with_done() -> None:
    assert DoneWatch().seen(DONE)
    assert DoneWatch().seen(b"data:[DONE]\n\n")
    assert not DoneWatch().seen(event(chunk({"content": "\ndata: [DONE]"})))


@pytest.mark.parametrize("end", [b"\n", b"\r\n", b"\r"])
def test_every_line_end(end: bytes) -> None:
    events = Events()
    stream = STREAM.replace(b"\r\n", b"\n").replace(b"\n", end)
    assert b"".join(events.feed(stream)) + events.rest() == stream
    rewritten = passed(Rewriter(strip_usage=True), [stream])
    assert b'"usage":{' not in rewritten
    assert rewritten.endswith(b"data: [DONE]" + end + end)
