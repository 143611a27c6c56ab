"""Owns the gate: whether a candidate's evidence clears the bars that were declared before looking. Pure."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Literal

from gateway.runs.schemas import AgreementBar, Bar, JudgedBar, parse_bars

Outcome = Literal["passed", "failed", "undecided"]


@dataclass(frozen=True)
class BarOutcome:
    """What one bar says, in words and numbers."""

    name: str
    kind: str
    outcome: Outcome
    reason: str
    value: float | None = None
    low: float | None = None
    high: float | None = None
    bar: float | None = None


@dataclass(frozen=True)
class GateOutcome:
    """`passed` if every bar is, `failed` if one is, else `undecided`; one reason a bar."""

    candidate: str
    outcome: Outcome
    bars: tuple[BarOutcome, ...]

    @property
    def passed(self) -> bool:
        return self.outcome == "passed"

    @property
    def pending(self) -> bool:
        """Whether a bar has nothing to go by yet."""
        return any(bar.value is None for bar in self.bars)

    @property
    def reasons(self) -> list[str]:
        return [bar.reason for bar in self.bars]


def decide(
    candidate: str, measured: dict[str, Any] | None, external: dict[str, Any], bars: Sequence[Any]
) -> GateOutcome:
    """`measured`: the candidate's entry of the evaluation, None where there is none; `external`: posted scores."""
    outcomes = tuple(_bar(bar, candidate, measured or {}, external) for bar in parse_bars(list(bars)))
    words = {bar.outcome for bar in outcomes}
    overall: Outcome = "failed" if "failed" in words else "undecided" if "undecided" in words else "passed"
    return GateOutcome(candidate, overall, outcomes)


def _bar(bar: Bar, candidate: str, measured: dict[str, Any], external: dict[str, Any]) -> BarOutcome:
    if isinstance(bar, JudgedBar):
        return _against(bar, measured.get("judged"), "win_rate", 0.5 - bar.delta, "judged win rate over the teacher")
    if isinstance(bar, AgreementBar):
        return _against(bar, measured.get("agreement"), "value", bar.bar, "exact agreement with the teacher")
    posted = (external.get(bar.name) or {}).get(candidate)
    return _against(bar, posted, "value", bar.bar, f"share right by your scorer {bar.name!r}")


def _against(bar: Bar, numbers: dict[str, Any] | None, key: str, least: float, what: str) -> BarOutcome:
    if not numbers or numbers.get("n", 0) == 0:
        reason = f"{bar.name}: pending, the {what} has not been measured."
        return BarOutcome(bar.name, bar.kind, "undecided", reason, bar=least)
    value, low, high = numbers[key], numbers["low"], numbers["high"]
    outcome: Outcome = "passed" if low >= least else "failed" if high < least else "undecided"
    relation = {
        "passed": "its lower end reaches",
        "failed": "even its upper end is below",
        "undecided": "too few examples to tell which side it is on of",
    }[outcome]
    reason = f"{bar.name}: {what} is {value:.3f} [{low:.3f}, {high:.3f}]; {relation} the bar {least:.3f}."
    return BarOutcome(bar.name, bar.kind, outcome, reason, value, low, high, least)
