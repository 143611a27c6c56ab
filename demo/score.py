"""The report's scorer: answers against the truth, with intervals, paired tests, times and money.

Owns the arithmetic of the report and nothing else. No model and no judge has a say here.
"""

import json
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from decimal import Decimal
from typing import Any

import numpy as np
from scipy.stats import binomtest

from demo.grammar import FIELDS

Truth = Mapping[str, str | bool]


@dataclass(frozen=True)
class Share:
    """`right` of `n` with the Wilson score interval (Wilson 1927) at 95 %."""

    value: float
    low: float
    high: float
    right: int
    n: int

    def as_dict(self) -> dict[str, float | int]:
        return asdict(self)


@dataclass(frozen=True)
class Paired:
    """Two candidates on the same messages: who alone was right how often, and McNemar's exact two-sided p."""

    first_only: int
    second_only: int
    n: int
    difference: float  # accuracy of the first less that of the second
    p: float

    def as_dict(self) -> dict[str, float | int]:
        return asdict(self)


def share(hits: Sequence[bool]) -> Share:
    """The share of true values. Raises ValueError when there is nothing to count."""
    if not hits:
        raise ValueError("no answers to score: the evaluation has no outputs")
    right = sum(hits)
    interval = binomtest(right, len(hits)).proportion_ci(0.95, method="wilson")
    return Share(right / len(hits), float(interval.low), float(interval.high), right, len(hits))


def paired(first: Sequence[bool], second: Sequence[bool]) -> Paired:
    """McNemar's exact test: under the null, the messages that only one got right split like a fair coin."""
    first_only = sum(a and not b for a, b in zip(first, second, strict=True))
    second_only = sum(b and not a for a, b in zip(first, second, strict=True))
    split = first_only + second_only
    p = float(binomtest(first_only, split, 0.5).pvalue) if split else 1.0
    difference = (first_only - second_only) / len(first) if first else 0.0
    return Paired(first_only, second_only, len(first), difference, p)


def parse(output: str) -> dict[str, Any] | None:
    """The answer's fields; None when it is no JSON object."""
    try:
        fields = json.loads(output)
    except ValueError:
        return None
    return fields if isinstance(fields, dict) else None


def right(output: str, truth: Truth) -> bool:
    """Whether every field is right and there is none besides. `1` is not `true`."""
    fields = parse(output)
    return fields is not None and set(fields) == set(truth) and all(_same(fields[f], truth[f]) for f in truth)


def field_right(output: str, truth: Truth, field: str) -> bool:
    """Whether one field is right, whatever the others are."""
    fields = parse(output)
    return fields is not None and field in fields and _same(fields[field], truth[field])


def by_field(outputs: Sequence[str], truths: Sequence[Truth]) -> dict[str, Share]:
    """Accuracy of each field."""
    pairs = list(zip(outputs, truths, strict=True))
    return {f: share([field_right(output, truth, f) for output, truth in pairs]) for f in FIELDS}


def agrees(output: str, reference: str) -> bool:
    """Whether two answers say the same: as JSON where both are, else as text."""
    mine, theirs = parse(output), parse(reference)
    if mine is None or theirs is None:
        return output.strip() == reference.strip()
    return set(mine) == set(theirs) and all(_same(mine[f], theirs[f]) for f in mine)


def _same(value: Any, wanted: Any) -> bool:
    return type(value) is type(wanted) and bool(value == wanted)


def percentiles(seconds: Sequence[float]) -> dict[str, float]:
    """Median and 95th percentile in milliseconds. Raises ValueError without measurements."""
    if not seconds:
        raise ValueError("no latencies were measured")
    p50, p95 = np.percentile(np.asarray(seconds) * 1000, [50, 95])
    return {"p50_ms": round(float(p50), 1), "p95_ms": round(float(p95), 1), "n": len(seconds)}


def token_cost(prompt_tokens: int, completion_tokens: int, calls: int, prices: Mapping[str, str]) -> Decimal:
    """USD per 1,000 calls at prices per million tokens (`input`, `output`)."""
    spent = prompt_tokens * Decimal(prices["input"]) + completion_tokens * Decimal(prices["output"])
    return spent / 1_000_000 / calls * 1000


def engine_cost(calls_per_second: float, usd_per_hour: Decimal) -> Decimal:
    """USD per 1,000 calls of an engine that is busy at `calls_per_second`."""
    return usd_per_hour / 3600 * 1000 / Decimal(str(calls_per_second))
