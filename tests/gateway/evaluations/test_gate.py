"""The gate: each kind of bar, and that anything but proof keeps it shut."""

from __future__ import annotations

from typing import Any

import pytest

from gateway.evaluations.gate import decide

JUDGED = {"kind": "judged", "name": "judged", "delta": 0.05}
AGREEMENT = {"kind": "agreement", "name": "agreement", "bar": 0.8}
TRUTH = {"kind": "external", "name": "truth", "bar": 0.8}


def measured(
    judged_low: float = 0.47, judged_high: float = 0.55, low: float = 0.85, high: float = 0.9
) -> dict[str, Any]:
    return {
        "n": 300,
        "judged": {"win_rate": 0.52, "low": judged_low, "high": judged_high, "n": 300},
        "agreement": {"value": 0.87, "low": low, "high": high, "n": 300},
    }


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.45, 0.6, "passed"), (0.449, 0.6, "undecided"), (0.3, 0.449, "failed"), (0.3, 0.45, "undecided")],
)
def test_judged_bar_by_its_interval(low: float, high: float, outcome: str) -> None:
    assert decide("grpo", measured(low, high), {}, [JUDGED]).outcome == outcome


def test_every_bar_has_to_pass() -> None:
    posted = {"truth": {"grpo": {"value": 0.86, "low": 0.82, "high": 0.9, "n": 300}}}
    assert decide("grpo", measured(), posted, [JUDGED, AGREEMENT, TRUTH]).passed
    below = {"truth": {"grpo": {"value": 0.7, "low": 0.65, "high": 0.75, "n": 300}}}
    outcome = decide("grpo", measured(), below, [JUDGED, AGREEMENT, TRUTH])
    assert outcome.outcome == "failed"
    assert [bar.outcome for bar in outcome.bars] == ["passed", "passed", "failed"]
    assert "truth" in outcome.reasons[2]
    assert "0.700 [0.650, 0.750]" in outcome.reasons[2]


def test_pending_results_and_other_candidates_decide_nothing() -> None:
    assert decide("grpo", measured(), {}, [JUDGED, TRUTH]).outcome == "undecided"
    other = {"truth": {"sft": {"value": 0.9, "low": 0.86, "high": 0.93, "n": 300}}}
    assert decide("grpo", measured(), other, [TRUTH]).outcome == "undecided"
    assert decide("grpo", None, {}, [JUDGED, AGREEMENT]).outcome == "undecided"


def test_a_failed_bar_outweighs_an_undecided_one() -> None:
    assert decide("grpo", measured(low=0.6, high=0.7), {}, [TRUTH, AGREEMENT]).outcome == "failed"
