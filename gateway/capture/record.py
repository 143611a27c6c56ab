"""Owns the record of one call as it lies in a spool segment, and its frame. Must not touch files.

A frame is a header of 16 bytes (magic, length of the body, CRC-32 of the body, length of the envelope),
the envelope as msgpack, then the request's and the response's bytes exactly as they crossed the wire.
"""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from uuid import UUID

import msgspec

MAGIC = b"SDR1"
_HEADER = struct.Struct("<4sIII")
HEADER_BYTES = _HEADER.size
_LENGTHS = struct.Struct("<I")


class Envelope(msgspec.Struct, frozen=True, array_like=True):
    """What the relay knew about a call when its last byte was about to leave. Times in nanoseconds.

    `capture`: `full` has both bodies, `metadata` none, `off` is charged but not stored as a call.
    `cut`: why the answer is not whole (client_hangup, upstream_cut, upstream_idle_timeout); None when it is.
    `usage`: only where the bodies are not kept, because the writer cannot read it from them.
    `trajectory`: what the app says that this call is part of.
    `upstream_model`: the name that the upstream was asked for, where that is not the alias.
    `traceparent`: the client's header of this name, as it came.
    """

    id: UUID
    project_id: UUID
    key_id: UUID
    received_ns: int
    alias: str
    task_id: UUID | None
    task_slug: str | None
    served_by: str
    upstream_id: UUID | None
    student_id: UUID | None
    route_revision_id: UUID | None
    fallback_reason: str | None
    streamed: bool
    status: int
    request_encoding: str | None
    response_encoding: str | None
    capture: str
    cut: str | None
    error: str | None
    latency_ns: int
    ttfb_ns: int | None
    overhead_ns: int
    usage: dict[str, int] | None = None
    finish_reason: str | None = None
    upstream_model: str | None = None
    endpoint: str = "chat.completions"
    traceparent: str | None = None
    trajectory: str | None = None


@dataclass(frozen=True)
class Record:
    """One call as read back from the spool."""

    envelope: Envelope
    request: bytes
    response: bytes


_encoder = msgspec.msgpack.Encoder()
_decoder = msgspec.msgpack.Decoder(Envelope)


def encode(envelope: Envelope, request: bytes, response: list[bytes]) -> list[bytes]:
    """The frame as buffers for one `writev`: nothing is copied."""
    head = _encoder.encode(envelope)
    length = _LENGTHS.pack(len(request))
    crc = zlib.crc32(request, zlib.crc32(length, zlib.crc32(head)))
    size = len(head) + len(length) + len(request)
    for piece in response:
        crc = zlib.crc32(piece, crc)
        size += len(piece)
    return [_HEADER.pack(MAGIC, size, crc, len(head)), head, length, request, *response]


@dataclass(frozen=True)
class Framed:
    """A frame found at `offset`, ending before `end`. `record` is None where the bytes are damaged."""

    offset: int
    end: int
    record: Record | None


def frame_bytes(header: memoryview) -> int:
    """The length of the frame that `header` (16 bytes) begins; 0 where it is not a header."""
    magic, size, _, _ = _HEADER.unpack_from(header)
    return HEADER_BYTES + int(size) if magic == MAGIC else 0


def decode(buffer: memoryview, closed: bool = False) -> Iterator[Framed]:
    """The frames in `buffer`. A last frame that is not whole yet ends the iteration: read again later.

    Damage is passed over up to the next magic and yielded with `record=None`; so is an unfinished frame when
    the segment is `closed` and nothing can follow.
    """
    offset = 0
    while len(buffer) - offset >= HEADER_BYTES:
        magic, size, crc, head_size = _HEADER.unpack_from(buffer, offset)
        if magic != MAGIC:
            end = _next_magic(buffer, offset + 1)
            yield Framed(offset, end, None)
            offset = end
            continue
        end = offset + HEADER_BYTES + size
        if end > len(buffer):
            if not closed:
                return
            end = _next_magic(buffer, offset + 1)
            yield Framed(offset, end, None)
            offset = end
            continue
        body = buffer[offset + HEADER_BYTES : end]
        if zlib.crc32(body) != crc:
            end = _next_magic(buffer, offset + 1)
            yield Framed(offset, end, None)
        else:
            yield Framed(offset, end, _open(body, head_size))
        offset = end
    if closed and offset < len(buffer):
        yield Framed(offset, len(buffer), None)


def _open(body: memoryview, head_size: int) -> Record | None:
    try:
        envelope = _decoder.decode(body[:head_size])
    except msgspec.MsgspecError:
        return None
    (request_size,) = _LENGTHS.unpack_from(body, head_size)
    start = head_size + _LENGTHS.size
    return Record(envelope, bytes(body[start : start + request_size]), bytes(body[start + request_size :]))


def _next_magic(buffer: memoryview, start: int) -> int:
    found = bytes(buffer[start:]).find(MAGIC)
    return len(buffer) if found < 0 else start + found
