"""Owns undoing the content encodings that bodies may come in. Must not decide what to do about a bad one."""

from __future__ import annotations

import zlib

import zstandard

ENCODINGS = ("gzip", "x-gzip", "deflate", "zstd", "identity")


class TooLarge(ValueError):
    """The clear body would be larger than allowed."""


def decompress(body: bytes, encoding: str | None, limit: int | None = None) -> bytes:
    """The body in clear, as far as it goes: at most `limit` bytes.

    Raises ValueError for damage, an early end or an encoding not in ENCODINGS, TooLarge beyond `limit`.
    """
    if not encoding or encoding == "identity":
        clear = body
    elif encoding in ("gzip", "x-gzip", "deflate"):
        clear = _inflate(body, limit)
    elif encoding == "zstd":
        clear = _zstd(body, limit)
    else:
        raise ValueError(f"unknown content-encoding {encoding!r}")
    if limit is not None and len(clear) > limit:
        raise TooLarge(f"more than {limit} bytes")
    return clear


def _inflate(body: bytes, limit: int | None) -> bytes:
    inflater = zlib.decompressobj(wbits=zlib.MAX_WBITS | 32)
    try:
        clear = inflater.decompress(body, 0 if limit is None else limit + 1)
    except zlib.error as error:
        raise ValueError(f"damaged: {error}") from None
    if not inflater.eof and (limit is None or len(clear) <= limit):
        raise ValueError("it ends early")
    return clear


def _zstd(body: bytes, limit: int | None) -> bytes:
    try:
        with zstandard.ZstdDecompressor().stream_reader(body, read_across_frames=True) as reader:
            return reader.read(-1 if limit is None else limit + 1)
    except zstandard.ZstdError as error:
        raise ValueError(f"damaged: {error}") from None
