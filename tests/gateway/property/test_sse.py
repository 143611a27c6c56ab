"""Cutting event streams: what comes out depends on the bytes alone, never on how they were cut into pieces."""

from __future__ import annotations

from itertools import pairwise

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from gateway.core.sse import BOM, Events, data_of
from gateway.proxy.sse import DoneWatch, Rewriter
from tests.gateway.world import USAGE_CHUNK, chunk

TEXT = st.text(st.characters(exclude_categories=["Cs"]) | st.sampled_from('":{}[], \t'), max_size=12).filter(
    lambda text: not set("\r\n") & set(text)
)
LINE = st.one_of(
    TEXT.map(lambda t: f"data: {t}"),
    TEXT.map(lambda t: f"data:{t}"),
    TEXT.map(lambda t: f": {t}"),
    st.sampled_from(["", "", "", "data: [DONE]", "event: x", "id: 7", "retry: 10", "data: {\"usage\":{}}", ":"]),
)  # fmt: skip
STREAMS = st.lists(st.tuples(LINE, st.sampled_from(["\n", "\n", "\r\n", "\r"]))).map(
    lambda lines: "".join(line + end for line, end in lines).encode()
)
STREAMS |= STREAMS.map(BOM.__add__)
CUTS = st.lists(st.integers(0, 1_000_000), max_size=30)


def cut(whole: bytes, cuts: list[int]) -> list[bytes]:
    bounds = [0, *sorted(c % (len(whole) + 1) for c in cuts), len(whole)]
    return [whole[a:b] for a, b in pairwise(bounds)]


def split(pieces: list[bytes]) -> list[bytes]:
    events = Events()
    return [event for piece in pieces for event in events.feed(piece)] + [events.rest()]


def by_the_standard(stream: bytes) -> list[str]:
    """The data of a stream's events, line by line as the HTML standard words it; the last may want its empty line."""
    found: list[str] = []
    data: list[str] = []
    for line in [*stream.decode("utf-8-sig").replace("\r\n", "\n").replace("\r", "\n").split("\n"), ""]:
        if not line and data:
            found.append("\n".join(data))
            data = []
        name, _, value = line.partition(":")
        if name == "data" and ":" in line:
            data.append(value.removeprefix(" "))
    return found


@given(STREAMS | st.binary(max_size=60), CUTS)
def test_events_are_the_same_wherever_a_stream_is_cut(stream: bytes, cuts: list[int]) -> None:
    events = split(cut(stream, cuts))
    assert b"".join(events) == stream
    datas = [data for data in map(data_of, events) if data is not None]
    assert datas == [data for data in map(data_of, split([stream])) if data is not None]


@given(STREAMS, CUTS)
def test_events_are_those_of_the_standard(stream: bytes, cuts: list[int]) -> None:
    datas = [data.decode() for data in map(data_of, split(cut(stream, cuts))) if data is not None]
    assert datas == by_the_standard(stream)


CHUNKS = st.one_of(
    TEXT.map(lambda text: chunk({"content": text})),
    st.just(chunk({}, "stop")),
    st.just(chunk({"content": '"usage"'}, usage={"prompt_tokens": 1})),
    st.just({"choices": [], "prompt_filter_results": [], "usage": None}),
    st.just({"error": {"message": "usage"}}),
)


@given(st.lists(CHUNKS | st.none(), max_size=8), st.sampled_from(["\n\n", "\r\n\r\n", "\r\r"]), CUTS)
def test_only_the_usage_chunk_is_taken_out(chunks: list[dict[str, object] | None], end: str, cuts: list[int]) -> None:
    def stream(*values: dict[str, object] | None) -> bytes:
        pieces = [b": ping" if value is None else b"data: " + msgspec.json.encode(value) for value in values]
        return b"".join(piece + end.encode() for piece in [*pieces, b"data: [DONE]"])

    rewriter = Rewriter(strip_usage=True)
    given_pieces = cut(stream(*chunks, USAGE_CHUNK, *chunks), cuts)
    assert b"".join([rewriter.feed(piece) for piece in given_pieces]) + rewriter.rest() == stream(*chunks, *chunks)


@given(st.binary(max_size=80) | STREAMS, CUTS)
def test_what_has_no_usage_keeps_every_byte(stream: bytes, cuts: list[int]) -> None:
    rewriter = Rewriter(strip_usage=True)
    stream = stream.replace(b'"usage"', b"")
    assert b"".join([rewriter.feed(piece) for piece in cut(stream, cuts)]) + rewriter.rest() == stream


@given(st.lists(TEXT, max_size=6), st.sampled_from(["\n", "\r\n", "\r"]), st.sampled_from(["", " "]), CUTS)
def test_done_is_noticed_with_its_last_byte_and_never_before(
    texts: list[str], end: str, space: str, cuts: list[int]
) -> None:
    datas = [msgspec.json.encode(f"{text}\ndata: [DONE]") for text in texts]
    before = b"".join(b"data: " + data + end.encode() * 2 for data in datas)
    done = before + f"data:{space}[DONE]".encode()
    watch, got = DoneWatch(), 0
    for piece in cut(done + f"{end * 2}: after".encode(), cuts):
        got += len(piece)
        if (seen := watch.seen(piece)) or got >= len(done):
            assert seen
            assert got >= len(done)
            break
