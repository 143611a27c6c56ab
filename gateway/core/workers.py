"""Owns what the gateway's processes on one port tell each other: one note each with its figures, once a second.

So whoever is asked for /metrics answers for all of them. A process started in the place of one that died goes on from
its last note: a counter that fell would look to Prometheus as if everything were counted once more.
Must not know what the figures mean.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec
from prometheus_client import REGISTRY, CollectorRegistry, generate_latest
from prometheus_client.core import Metric
from prometheus_client.registry import Collector

from gateway.core.metrics import SUMMED_GAUGES

VARIABLE = "STEPDOWN_WORKER"
"""Holds the number of a process, from 1, where several share the port; the supervisor sets it."""
EVERY_S = 1.0
_STALE_S = 5.0
_PREFIX = "stepdown_"
Samples = dict[tuple[str, tuple[tuple[str, str], ...]], float]


class Family(msgspec.Struct, array_like=True):
    """One metric with its samples: name, labels, value."""

    name: str
    documentation: str
    type: str
    samples: list[tuple[str, dict[str, str], float]]


class Note(msgspec.Struct):
    """A worker's figures at `at` (Unix seconds). `ready`: whether it answers calls."""

    at: float
    ready: bool
    families: list[Family]


class Worker:
    """This process as one of several."""

    def __init__(self, folder: Path, number: int) -> None:
        self._path = note_path(folder, number)
        before = read(self._path)
        self._before = [family for family in before.families if family.type != "gauge"] if before else []

    def figures(self) -> list[Family]:
        """What this process counted, and those before it in its place."""
        return list(merged([self._before, _collected()]))

    def tell(self, ready: bool) -> None:
        """Replaces the note. A full disk costs the note alone."""
        temporary = self._path.with_suffix(".new")
        try:
            self._path.parent.mkdir(parents=True, exist_ok=True, mode=0o700)
            temporary.write_bytes(msgspec.msgpack.encode(Note(time.time(), ready, self.figures())))
            temporary.replace(self._path)
        except OSError:
            return

    def exposition(self, count: int) -> bytes:
        """The metrics of all `count` workers, for Prometheus to read."""
        told = [self.figures()]
        for number in range(1, count + 1):
            path = note_path(self._path.parent, number)
            if path != self._path and (note := read(path)) is not None:
                stale = time.time() - note.at > _STALE_S
                told.append([f for f in note.families if not (stale and f.type == "gauge")])
        registry = CollectorRegistry(auto_describe=False)
        registry.register(_Told(list(merged(told))))
        return generate_latest(registry)


def own_number() -> int | None:
    """The number of this process among several; None where it is alone."""
    number = os.environ.get(VARIABLE)
    return int(number) if number else None


def note_path(folder: Path, number: int) -> Path:
    """Where worker `number` leaves its note."""
    return folder / f"gateway-{number}.note"


def read(path: Path) -> Note | None:
    """The note at `path`; None where there is none."""
    try:
        return msgspec.msgpack.decode(path.read_bytes(), type=Note)
    except (FileNotFoundError, msgspec.MsgspecError):
        return None


def merged(told: Iterable[list[Family]]) -> Iterator[Family]:
    """One list out of several: counts are added, of a gauge the highest value counts, unless it is one to add."""
    families: dict[str, Family] = {}
    values: dict[str, Samples] = {}
    for family in (family for each in told for family in each):
        families.setdefault(family.name, family)
        found = values.setdefault(family.name, {})
        highest = family.type == "gauge" and family.name not in SUMMED_GAUGES
        for name, labels, value in family.samples:
            key = (name, tuple(labels.items()))
            before = found.get(key, value if highest else 0.0)
            found[key] = max(before, value) if highest else before + value
    for name, family in families.items():
        samples = [(sample, dict(labels), value) for (sample, labels), value in values[name].items()]
        yield Family(name, family.documentation, family.type, samples)


class _Told(Collector):
    def __init__(self, families: list[Family]) -> None:
        self._families = families

    def collect(self) -> Iterator[Metric]:
        for family in self._families:
            metric = Metric(family.name, family.documentation, family.type)
            for name, labels, value in family.samples:
                metric.add_sample(name, labels, value)
            yield metric


def _collected() -> list[Family]:
    return [
        Family(m.name, m.documentation, m.type, [(s.name, dict(s.labels), s.value) for s in m.samples])
        for m in REGISTRY.collect()
        if m.name.startswith(_PREFIX)
    ]
