"""Advantages by hand, and the rules about groups that teach nothing."""

from statistics import pstdev

import pytest

from rl.advantages import Scale, group_advantages, has_signal, scale_batch


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


@pytest.mark.parametrize("scale", ["mean", "group_std", "rloo"])
def test_a_group_permuted_has_its_advantages_permuted(scale: Scale) -> None:
    rewards, order = [1.0, 0.0, 0.5, 0.2], [2, 0, 3, 1]
    straight = group_advantages(rewards, scale)
    assert group_advantages([rewards[i] for i in order], scale) == pytest.approx([straight[i] for i in order])


@pytest.mark.parametrize("scale", ["mean", "group_std", "rloo"])
def test_a_judge_that_is_kinder_to_all_changes_nothing(scale: Scale) -> None:
    rewards = [1.0, 0.0, 0.5]
    kinder = group_advantages([reward + 3 for reward in rewards], scale)
    assert kinder == pytest.approx(group_advantages(rewards, scale), abs=1e-6)


def test_the_scale_of_rewards_matters_only_where_nothing_divides_by_their_spread() -> None:
    rewards = [1.0, 0.0, 0.5]
    louder = [10 * reward for reward in rewards]
    assert group_advantages(louder, "group_std") == pytest.approx(group_advantages(rewards, "group_std"), rel=1e-4)
    for scale in ("mean", "rloo"):
        tenfold = [10 * value for value in group_advantages(rewards, scale)]
        assert group_advantages(louder, scale) == pytest.approx(tenfold)
    centred = group_advantages(rewards), group_advantages([4.0, 2.0])
    scaled = scale_batch(centred)
    assert scale_batch([[10 * v for v in group] for group in centred])[0] == pytest.approx(scaled[0], rel=1e-4)
