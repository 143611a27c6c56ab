"""Owns how bodies are stored: by content, compressed. Must not know what a body means."""

from __future__ import annotations

import hashlib

import zstandard

LEVEL = 6
_compressor = zstandard.ZstdCompressor(level=LEVEL, write_checksum=False, write_content_size=True)
_decompressor = zstandard.ZstdDecompressor()


class BlobSet:
    """Bodies on their way to storage, each once."""

    def __init__(self) -> None:
        self.bodies: dict[bytes, bytes] = {}

    def add(self, body: bytes) -> bytes:
        """Takes a body; returns its hash."""
        digest = hashlib.sha256(body).digest()
        self.bodies.setdefault(digest, body)
        return digest


def compress(body: bytes) -> bytes:
    """The stored form of a body."""
    return _compressor.compress(body)


def decompress(data: bytes) -> bytes:
    """A body from its stored form."""
    return _decompressor.decompress(data)
