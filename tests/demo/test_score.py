"""The scorer's arithmetic against numbers worked out by hand."""

from decimal import Decimal

import pytest

from demo import score

TRUTH: dict[str, str | bool] = {
    "category": "refund",
    "urgency": "high",
    "product": "app",
    "needs_human": True,
}
RIGHT = '{"category":"refund","urgency":"high","product":"app","needs_human":true}'


def test_wilson_interval_by_hand() -> None:
    """8 of 10: (0.8 + z²/20 ± z·sqrt(0.8·0.2/10 + z²/400)) / (1 + z²/10) with z = 1.96."""
    share = score.share([True] * 8 + [False] * 2)
    assert (share.value, share.right, share.n) == (0.8, 8, 10)
    assert share.low == pytest.approx(0.4902, abs=1e-4)
    assert share.high == pytest.approx(0.9433, abs=1e-4)


def test_all_right_has_no_upper_room() -> None:
    share = score.share([True] * 300)
    assert share.high == 1.0
    assert share.low == pytest.approx(300 / (300 + 1.959964**2), abs=1e-6)


def test_the_bar_of_the_demo_needs_this_many_right() -> None:
    assert score.share([True] * 254 + [False] * 46).low >= 0.80
    assert score.share([True] * 253 + [False] * 47).low < 0.80


def test_nothing_to_count_is_an_error() -> None:
    with pytest.raises(ValueError, match="no answers"):
        score.share([])
    with pytest.raises(ValueError, match="no latencies"):
        score.percentiles([])


def test_mcnemar_by_hand() -> None:
    """9 against 1 of 10 that differ: p = 2·(C(10,0) + C(10,1)) / 2¹⁰ = 22/1024."""
    both, neither = [True] * 30, [False] * 10
    first = both + neither + [True] * 9 + [False]
    second = both + neither + [False] * 9 + [True]
    test = score.paired(first, second)
    assert (test.first_only, test.second_only, test.n) == (9, 1, 50)
    assert test.difference == pytest.approx(8 / 50)
    assert test.p == pytest.approx(22 / 1024)
    assert score.paired(second, first).p == pytest.approx(test.p)
    assert score.paired(second, first).difference == pytest.approx(-8 / 50)


def test_no_difference_is_no_evidence() -> None:
    assert score.paired([True, False], [True, False]).p == 1.0


@pytest.mark.parametrize(
    ("output", "is_right"),
    [
        (RIGHT, True),
        ('{ "needs_human": true, "urgency": "high", "product": "app", "category": "refund" }', True),
        (RIGHT.replace("true", "false"), False),
        (RIGHT.replace("true", "1"), False),
        (RIGHT.replace("true", '"true"'), False),
        (RIGHT.replace("}", ',"extra":1}'), False),
        ('{"category":"refund"}', False),
        (RIGHT[:-1], False),
        ("[]", False),
        ("", False),
        (f"Sure! {RIGHT}", False),
    ],
)
def test_right(output: str, is_right: bool) -> None:
    assert score.right(output, TRUTH) is is_right


def test_by_field() -> None:
    outputs = [RIGHT, RIGHT.replace("refund", "billing"), '{"category":"refund"}', "oops"]
    fields = score.by_field(outputs, [TRUTH] * 4)
    assert {name: share.right for name, share in fields.items()} == {
        "category": 2,
        "urgency": 2,
        "product": 2,
        "needs_human": 2,
    }


def test_agreement_is_of_meaning_where_both_are_json() -> None:
    assert score.agrees('{"a": 1, "b": true}', '{"b":true,"a":1}')
    assert not score.agrees('{"a":1}', '{"a":true}')
    assert score.agrees(" yes\n", "yes")
    assert not score.agrees('{"a":1}', "yes")


def test_percentiles_by_hand() -> None:
    """Of 1 … 100 ms: the median is 50.5, the 95th percentile 95.05 (linear)."""
    assert score.percentiles([i / 1000 for i in range(1, 101)]) == {"p50_ms": 50.5, "p95_ms": 95.0, "n": 100}


def test_costs_by_hand() -> None:
    """500 calls, 75,000 tokens in at $2.50/M, 10,000 out at $15/M: $0.1875 + $0.15, so $0.675 per 1,000."""
    cost = score.token_cost(75_000, 10_000, 500, {"input": "2.50", "output": "15.00"})
    assert cost == Decimal("0.675")
    assert score.engine_cost(10, Decimal("0.36")) == Decimal("0.01")
