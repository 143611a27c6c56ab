"""Advantages by hand, and the rules about groups that teach nothing."""

from statistics import pstdev

import pytest

from rl.advantages import group_advantages, has_signal, scale_batch


def test_mean_is_subtracted() -> None:
    assert group_advantages([1.0, 0.0, 0.5]) == pytest.approx([0.5, -0.5, 0.0])


def test_group_std_divides_by_sigma() -> None:
    rewards = [1.0, 0.0, 0.5]
    want = [value / pstdev(rewards) for value in (0.5, -0.5, 0.0)]
    assert group_advantages(rewards, "group_std") == pytest.approx(want, rel=1e-4)


def test_rloo_compares_with_the_others() -> None:
    assert group_advantages([1.0, 0.0, 0.5], "rloo") == pytest.approx([1 - 0.25, 0 - 0.75, 0.5 - 0.5])


def test_batch_std_is_one_sigma_for_all_groups() -> None:
    groups = [[0.5, -0.5], [0.1, -0.1]]
    sigma = pstdev([0.5, -0.5, 0.1, -0.1])
    scaled = scale_batch(groups)
    assert scaled[0] == pytest.approx([0.5 / sigma, -0.5 / sigma], rel=1e-4)
    assert scaled[1] == pytest.approx([0.1 / sigma, -0.1 / sigma], rel=1e-4)


def test_no_signal_without_spread_or_within_the_judges_noise() -> None:
    assert not has_signal([0.4, 0.4, 0.4])
    assert has_signal([0.4, 0.5])
    assert not has_signal([0.4, 0.5], noise=0.1 + 1e-9)
