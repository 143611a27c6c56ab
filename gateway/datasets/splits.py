"""Owns where an input belongs and what a frozen version's hash is. Pure."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable

from gateway.datasets.schemas import DatasetRules, Example, Split


def split_of(input_hash: bytes, rules: DatasetRules) -> Split:
    """The side of an input: its hash read as a number in [0, 1) against fixed thresholds.

    Test comes first, then validation: with the same shares an input keeps its side however much data comes later.
    """
    place = int.from_bytes(input_hash[:8]) / 2**64
    if place < rules.test:
        return "test"
    return "validation" if place < rules.test + rules.validation else "train"


def content_hash(rows: Iterable[tuple[str, Example]]) -> bytes:
    """SHA-256 over the ordered rows: split, input, target and provenance."""
    digest = hashlib.sha256()
    for split, example in rows:
        row = [
            split,
            example.input_hash.hex(),
            str(example.call_id),
            str(example.upstream_id),
            example.messages,
            example.tools,
            example.target,
        ]
        digest.update(json.dumps(row, sort_keys=True, ensure_ascii=False, separators=(",", ":")).encode())
        digest.update(b"\n")
    return digest.digest()
