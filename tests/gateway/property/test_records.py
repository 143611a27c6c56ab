"""Damage in a spool segment costs what it touches, never a crash and never a neighbour."""

from __future__ import annotations

import struct
import zlib
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from gateway.capture.record import MAGIC, decode
from tests.gateway.capture.test_record import frame

BODIES = st.lists(
    st.sampled_from([b"", MAGIC, MAGIC + b"\1\0\0\0" * 3, b'{"model":"gpt-4o"}']) | st.binary(max_size=30)
)


def requests_in(data: bytes, closed: bool = True) -> list[bytes]:
    found = list(decode(memoryview(data), closed))
    assert all(a.end == b.offset for a, b in pairwise(found)), "every byte is accounted for"
    assert not found or found[0].offset == 0
    if closed:
        assert (found[-1].end if found else 0) == len(data)
    return [f.record.request for f in found if f.record]


@given(BODIES, st.data())
def test_neighbours_of_damage_survive(bodies: list[bytes], data: st.DataObject) -> None:
    frames = [frame(body, body) for body in bodies]
    victim = frame(b"victim", *data.draw(BODIES))
    place = data.draw(st.integers(0, len(frames)))
    start = data.draw(st.integers(0, len(victim)))
    end = data.draw(st.integers(start, len(victim)))
    damaged = victim[:start] + data.draw(st.binary(max_size=40)) + victim[end:]
    got = requests_in(b"".join([*frames[:place], damaged, *frames[place:]]))
    got = [request for request in got if request != b"victim"]
    assert got == bodies


@given(st.binary(max_size=300) | st.lists(st.just(MAGIC) | st.binary(max_size=20)).map(b"".join), st.booleans())
def test_any_bytes_can_be_read(data: bytes, closed: bool) -> None:
    requests_in(data, closed)


@given(st.binary(max_size=60), st.integers(0, 70))
def test_a_frame_with_a_right_checksum_and_nonsense_inside_is_damage(body: bytes, head_size: int) -> None:
    nonsense = struct.pack("<4sIII", MAGIC, len(body), zlib.crc32(body), head_size) + body
    assert requests_in(nonsense + frame(b"next")) == [b"next"]
    whole = bytearray(frame(b"victim"))
    whole[12:16] = struct.pack("<I", head_size)
    assert requests_in(bytes(whole) + frame(b"next"))[-1] == b"next"
