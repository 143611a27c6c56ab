"""Frames survive being cut, damaged and read in pieces."""

from __future__ import annotations

import random

from hypothesis import given
from hypothesis import strategies as st

from gateway.capture.record import Envelope, Framed, decode, encode, frame_bytes
from gateway.core.ids import new_id


def envelope(**fields: object) -> Envelope:
    values = {
        "id": new_id(), "project_id": new_id(), "key_id": new_id(), "received_ns": 1, "alias": "gpt-4o",
        "task_id": None, "task_slug": None, "served_by": "upstream", "upstream_id": new_id(), "student_id": None,
        "route_revision_id": None, "fallback_reason": None, "streamed": False, "status": 200,
        "request_encoding": None, "response_encoding": None, "capture": "full", "cut": None, "error": None,
        "latency_ns": 3, "ttfb_ns": 2, "overhead_ns": 1,
    }  # fmt: skip
    return Envelope(**(values | fields))


def frame(request: bytes = b"{}", *response: bytes, **fields: object) -> bytes:
    return b"".join(encode(envelope(**fields), request, list(response)))


def read(data: bytes, closed: bool = False) -> list[Framed]:
    return list(decode(memoryview(data), closed))


@given(st.lists(st.tuples(st.binary(max_size=50), st.lists(st.binary(max_size=30), max_size=3)), max_size=5))
def test_what_was_written_is_read(bodies: list[tuple[bytes, list[bytes]]]) -> None:
    frames = read(b"".join(frame(request, *response) for request, response in bodies))
    assert [(f.record.request, f.record.response) for f in frames if f.record] == [
        (request, b"".join(response)) for request, response in bodies
    ]


def test_an_unfinished_frame_waits_for_its_rest() -> None:
    first, second = frame(b"one"), frame(b"two")
    for cut in range(len(second)):
        assert [f.record.request for f in read(first + second[:cut]) if f.record] == [b"one"]
        assert frame_bytes(memoryview(second)) == len(second)


def test_in_a_closed_segment_an_unfinished_frame_is_damage() -> None:
    first, second = frame(b"one"), frame(b"two")
    for cut in range(1, len(second)):
        frames = read(first + second[:cut], closed=True)
        assert [f.record is not None for f in frames] == [True, False]
        assert frames[-1].end == len(first) + cut


def test_damage_costs_its_own_record_only() -> None:
    parts = [frame(b"request %d" % i, b"response") for i in range(3)]
    whole = b"".join(parts)
    start, end = len(parts[0]), len(parts[0]) + len(parts[1])
    generator = random.Random(1)
    for position in range(start, end):
        damaged = bytearray(whole)
        damaged[position] ^= 1 + generator.randrange(255)
        kept = [f.record.request for f in read(bytes(damaged), closed=True) if f.record]
        assert kept[0] == b"request 0"
        assert kept[-1] == b"request 2"
        assert b"request 1" not in kept
