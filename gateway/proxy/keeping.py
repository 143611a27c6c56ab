"""Owns how much of a call is kept: what its key, its headers and the settings allow, sampled and redacted.

Runs before the record is written, so that nothing which must not be kept is ever on a disk. Must not touch what the
client or the upstream gets.
"""

from __future__ import annotations

import hashlib
from functools import lru_cache
from typing import NamedTuple

from gateway.capture import assemble
from gateway.capture.dialects import dialect_of
from gateway.capture.redaction import Redactor
from gateway.core import jsontext
from gateway.core.compression import decompress
from gateway.tasks.fingerprint import conversation_hash

_MODES = ("off", "metadata", "full")


class Bodies(NamedTuple):
    """What is kept of a call's bodies. `cut`: why the answer is not whole, which redaction would hide."""

    request: bytes
    response: list[bytes]
    cut: str | None


@lru_cache(maxsize=256)
def capture_mode(*wished: str | None) -> str:
    """The most reserved of several wishes: off, metadata or full. A word that we do not know counts as off."""
    return _MODES[min(_MODES.index(w) if w in _MODES else 0 for w in wished if w is not None)]


def in_sample(share: float, trajectory: str | None, raw: bytes, encoding: str | None, endpoint: str) -> bool:
    """Whether a call falls into the share that is kept. All calls of a trajectory, or of a conversation, agree."""
    if trajectory is not None:
        chosen = hashlib.sha256(trajectory.encode()).digest()
    else:
        try:
            body = jsontext.decode(decompress(raw, encoding))
        except ValueError:
            return False
        chosen = conversation_hash(dialect_of(endpoint).as_chat(body)) if isinstance(body, dict) else b""
    return int.from_bytes(chosen[:8], "big") < share * 2**64


def redacted(
    redactor: Redactor, bodies: Bodies, encodings: tuple[str | None, str | None], endpoint: str
) -> Bodies | None:
    """The bodies as they may be kept: a stream as the answer it adds up to. None where they cannot be read."""
    try:
        request = jsontext.decode(decompress(bodies.request, encodings[0]))
    except ValueError:
        return None
    body = b"".join(bodies.response)
    answer = assemble.received(body, encodings[1], endpoint)
    if answer.response is None and body:
        return None
    asked = jsontext.encode(redactor.value(request))
    if answer.response is None:
        return Bodies(asked, [], bodies.cut)
    kept = jsontext.encode(redactor.value(answer.response))
    seems_whole = assemble.whole_body(kept, endpoint).whole and not answer.whole
    return Bodies(asked, [kept], bodies.cut or ("incomplete" if seems_whole else None))
