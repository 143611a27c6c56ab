"""Owns which dictionary a project's bodies are compressed with: keeps them at hand, trains them as bodies come.

A dictionary is never changed: what was compressed with an older one is read with that. Must not commit.
"""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Iterable
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.blobs import LONGEST_SAMPLE, NO_DICTIONARY, Codec, train

_TRAIN_AT = (200, 1_000, 5_000, 100_000)
"""Bodies of a project seen by this writer after which a dictionary is trained: the next ones know it better."""
_SAMPLES = 2_000
_PLAIN = Codec()
_KEPT = 256
_codecs: OrderedDict[tuple[UUID, int], Codec] = OrderedDict()


def codec_of(session: Session, project_id: UUID, dictionary_id: int) -> Codec:
    """The codec of a stored body, by its dictionary's id. Raises LookupError where the project has none of this id."""
    if dictionary_id == NO_DICTIONARY:
        return _PLAIN
    key = project_id, dictionary_id
    codec = _codecs.get(key)
    if codec is None:
        data = repository.dictionary(session, project_id, dictionary_id)
        if data is None:
            raise LookupError(f"project {project_id} has no dictionary {dictionary_id}")
        codec = _codecs[key] = Codec(data)
        if len(_codecs) > _KEPT:
            _codecs.popitem(last=False)
    _codecs.move_to_end(key)
    return codec


class Dictionaries:
    """The codecs that new bodies are compressed with, by project. `forget` after a transaction that failed."""

    def __init__(self) -> None:
        self._codecs: dict[UUID, Codec] = {}
        self._seen: dict[UUID, int] = {}
        self._samples: dict[UUID, list[bytes]] = {}

    def codec(self, session: Session, project_id: UUID, bodies: Iterable[bytes]) -> Codec:
        """The codec for these bodies, which are also what the next dictionary is trained from."""
        if project_id not in self._codecs:
            latest = repository.latest_dictionary(session, project_id)
            self._codecs[project_id] = Codec(latest)
            self._seen[project_id] = _TRAIN_AT[0] if latest else 0
        self._collect(session, project_id, bodies)
        return self._codecs[project_id]

    def forget(self) -> None:
        """Drops what may not have been stored."""
        self._codecs.clear()

    def _collect(self, session: Session, project_id: UUID, bodies: Iterable[bytes]) -> None:
        before = self._seen[project_id]
        if before >= _TRAIN_AT[-1]:
            return
        samples = self._samples.setdefault(project_id, [])
        for body in bodies:
            self._seen[project_id] += 1
            if len(body) <= LONGEST_SAMPLE:
                samples.append(body)
        del samples[:-_SAMPLES]
        if any(before < mark <= self._seen[project_id] for mark in _TRAIN_AT):
            made = train(samples)
            if made is not None:
                repository.add_dictionary(session, project_id, *made)
                self._codecs[project_id] = Codec(made[1])
        if self._seen[project_id] >= _TRAIN_AT[-1]:
            self._samples.pop(project_id, None)
