"""Owns how bodies are stored: by content, compressed with what a project's bodies have in common.

Must not know what a body means, nor touch the database.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Sequence

import zstandard

HASH_BYTES = 16
LEVEL = 9
DICTIONARY_BYTES = 65_536
LONGEST_SAMPLE = 16_384
NO_DICTIONARY = 0
_FEWEST_SAMPLES = 64


def digest_of(body: bytes) -> bytes:
    """A body's hash: the first half of its SHA-256."""
    return hashlib.sha256(body).digest()[:HASH_BYTES]


class BlobSet:
    """Bodies on their way to storage, each once."""

    def __init__(self) -> None:
        self.bodies: dict[bytes, bytes] = {}

    def add(self, body: bytes) -> bytes:
        """Takes a body; returns its hash."""
        digest = digest_of(body)
        self.bodies.setdefault(digest, body)
        return digest


class Codec:
    """Compresses with one dictionary, and reads what it compressed. Small bodies gain most: a frame of 200 bytes has
    little to refer to within itself."""

    def __init__(self, dictionary: bytes | None = None) -> None:
        given = zstandard.ZstdCompressionDict(dictionary) if dictionary else None
        self._compressor = zstandard.ZstdCompressor(
            level=LEVEL, dict_data=given, write_checksum=False, write_content_size=True
        )
        self._decompressor = zstandard.ZstdDecompressor(dict_data=given)

    def compress(self, body: bytes) -> bytes:
        """The stored form of a body."""
        return self._compressor.compress(body)

    def decompress(self, data: bytes) -> bytes:
        """A body from its stored form."""
        return self._decompressor.decompress(data)


def dictionary_of(data: bytes) -> int:
    """The id of the dictionary that a stored body needs, NO_DICTIONARY for none."""
    return zstandard.get_frame_parameters(data).dict_id


def decompress(data: bytes, codec: Callable[[int], Codec]) -> bytes:
    """A body from its stored form; `codec` gives the one of a dictionary's id."""
    return codec(dictionary_of(data)).decompress(data)


def train(samples: Sequence[bytes]) -> tuple[int, bytes] | None:
    """A dictionary of what the samples have in common, with its id; None where that is too little to be of use."""
    if len(samples) < _FEWEST_SAMPLES:
        return None
    try:
        made = zstandard.train_dictionary(DICTIONARY_BYTES, list(samples), level=LEVEL)
    except zstandard.ZstdError:
        return None
    return made.dict_id(), made.as_bytes()
