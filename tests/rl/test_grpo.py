"""The loop: it learns a toy reward, drops what teaches nothing, resumes exactly, and raises alarms."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean

import pytest
import torch

from rl.grpo import Grpo, GrpoConfig, NoVerdictError, StepReport
from rl.judge.base import CandidateVerdict, GroupVerdict, Judge, JudgeGroup
from rl.render import Renderer
from rl.rollout.local import LocalSampler
from rl.trainer import Trainer, TrainerSpec
from rl.types import LossName, LossSpec, Prompt
from rl.watch import Watch, common_share

PROMPTS = [Prompt(f"p{i}", [{"role": "user", "content": text}], anchor="aa") for i, text in enumerate("abcdefgh")]


class VowelJudge(Judge):
    """Toy reward: the share of an answer's bytes that are below "a" in code. Needs no reading."""

    def __init__(self) -> None:
        self.drop: set[str] = set()
        self.content: set[str] = set()  # prompts of which any answer is as good as another

    def score(self, groups: Sequence[JudgeGroup]) -> list[GroupVerdict | None]:
        return [None if group.key in self.drop else self._one(group) for group in groups]

    def _one(self, group: JudgeGroup) -> GroupVerdict:
        anchor = CandidateVerdict(self.reward(group.anchor)) if group.anchor is not None else None
        rewards = [1.0 if group.key in self.content else self.reward(text) for text in group.candidates]
        return GroupVerdict(tuple(map(CandidateVerdict, rewards)), anchor)

    @staticmethod
    def reward(text: str) -> float:
        return fmean(letter < "a" for letter in text) if text else 0.0


def build(tiny_dir: Path, folder: Path, seed: int = 0, **config: object) -> tuple[Grpo, VowelJudge]:
    trainer = Trainer(tiny_dir, TrainerSpec(dtype="float32", rank=8, alpha=16, seed=seed, block=16))
    judge = VowelJudge()
    shape = GrpoConfig(
        weights_dir=folder, prompts_per_step=8, group_size=8, max_tokens=6, lr=3e-2, warmup_steps=1, seed=seed
    )
    loop = Grpo(
        trainer,
        LocalSampler(tiny_dir, seed=seed),
        judge,
        Renderer(tiny_dir),
        PROMPTS,
        replace(shape, **config),  # type: ignore[arg-type]
    )
    return loop, judge


def everything_counts(loop: Grpo) -> None:
    """The tiny model hardly ever ends its answers: let the toy runs train on cut ones, too."""
    loop._data = lambda index, group: [  # type: ignore[method-assign]
        loop.renderer.rollout(group.tokens, sample, advantage, index)
        for sample, advantage in zip(group.samples, group.advantages or [0.0] * len(group.samples), strict=True)
    ]


@pytest.mark.parametrize("seed", [0, 1, 2])
@pytest.mark.parametrize("name", ["cispo", "dapo", "ppo", "gspo", "grpo", "dr_grpo", "importance_sampling"])
def test_the_toy_reward_is_learned(tiny_dir: Path, tmp_path: Path, name: LossName, seed: int) -> None:
    loop, _ = build(tiny_dir, tmp_path, seed, loss=LossSpec(name, constant_length=6))
    everything_counts(loop)
    rewards = [loop.step(step).metrics["reward_mean"] for step in range(20)]
    # 64 answers a step: three steps' mean is known to 0.02.
    assert fmean(rewards[-3:]) > fmean(rewards[:3]) + 0.1, rewards


def test_metrics_and_report_tell_what_happened(tiny_dir: Path, tmp_path: Path) -> None:
    loop, judge = build(tiny_dir, tmp_path)
    everything_counts(loop)
    judge.drop = {"p3"}
    report = loop.step(0)
    metrics = report.metrics
    assert metrics["groups"] == 8
    assert metrics["groups_no_verdict"] == 1
    kept = [group for group in report.groups if group.kept]
    assert metrics["groups_kept"] == len(kept)
    assert metrics["trained_tokens"] == sum(r.tokens for group in kept for r in group.rollouts)
    assert metrics["mismatch_kl"] < 1e-5
    assert metrics["reward_mean"] == pytest.approx(
        fmean(r.reward for group in report.groups if group.key != "p3" for r in group.rollouts if r.reward is not None)
    )
    assert metrics["margin"] == pytest.approx(metrics["reward_mean"] - VowelJudge.reward("aa"))
    for name in ("sample", "judge", "train", "push"):
        assert metrics[f"seconds_{name}"] >= 0
    (dropped,) = [group for group in report.groups if group.key == "p3"]
    assert dropped.dropped == "no verdict"
    assert all(rollout.reward is None for rollout in dropped.rollouts)
    for group in kept:
        assert sum(rollout.advantage or 0 for rollout in group.rollouts) == pytest.approx(0, abs=1e-9)
        assert group.anchor is not None
        assert group.anchor.advantage is None


def test_a_step_with_little_to_teach_is_a_small_one(tiny_dir: Path, tmp_path: Path) -> None:
    """Groups without variance give no gradient, but what they sampled counts in what the gradient is divided by."""

    def step(loss: LossSpec) -> StepReport:
        loop, judge = build(tiny_dir, tmp_path, loss=loss)
        everything_counts(loop)
        judge.content = {"p1", "p2", "p3", "p4", "p5", "p6"}
        return loop.step(0)

    report = step(LossSpec())
    everything = sum(rollout.tokens for group in report.groups for rollout in group.rollouts)
    taught = report.metrics["trained_tokens"]
    assert 0 < taught < everything / 2
    whole = step(LossSpec(denominator=taught))
    assert report.metrics["grad_norm"] == pytest.approx(whole.metrics["grad_norm"] * taught / everything, rel=1e-4)


def test_groups_that_teach_nothing_are_refilled_within_a_budget(tiny_dir: Path, tmp_path: Path) -> None:
    def step(refill: int, content: set[str]) -> StepReport:
        loop, judge = build(tiny_dir, tmp_path, prompts_per_step=4, refill=refill)
        everything_counts(loop)
        judge.content = content
        return loop.step(0)

    first = {group.key for group in step(0, set()).groups}
    found = step(2, first)
    assert [group.dropped for group in found.groups[:4]] == ["no variance"] * 4
    assert len({group.key for group in found.groups}) == 6, "two others, none twice"
    assert (found.metrics["groups_kept"], found.metrics["groups_refilled"]) == (2, 2)
    plenty = step(100, first)
    assert (plenty.metrics["groups_kept"], plenty.metrics["groups_refilled"]) == (4, 4), "no more than are wanted"
    assert step(100, {prompt.key for prompt in PROMPTS}).metrics["groups"] == len(PROMPTS), "no more than there are"
    assert step(100, set()).metrics["groups_refilled"] == 0


def test_a_higher_temperature_is_sampled_and_trained_alike(tiny_dir: Path, tmp_path: Path) -> None:
    loop, _ = build(tiny_dir, tmp_path, temperature=1.7)
    everything_counts(loop)
    assert loop.step(0).metrics["mismatch_kl"] < 1e-5


def test_what_was_trained_of_a_rollout_is_in_the_report(tiny_dir: Path, tmp_path: Path) -> None:
    loop, judge = build(tiny_dir, tmp_path)
    everything_counts(loop)
    judge.content = {"p2"}
    for group in loop.step(0).groups:
        for rollout in group.rollouts:
            assert (rollout.datum is not None) == group.kept
            if rollout.datum is not None:
                assert rollout.datum.advantage == rollout.advantage
                assert sum(weight > 0 for weight in rollout.datum.weights) == rollout.tokens


def test_truncated_rollouts_enter_the_mean_but_not_the_loss(tiny_dir: Path, tmp_path: Path) -> None:
    loop, _ = build(tiny_dir, tmp_path, max_tokens=1)
    report = loop.step(0)
    assert report.metrics["truncated_share"] > 0.9
    trained = [r for g in report.groups if g.kept for r in g.rollouts if r.finish_reason == "stop"]
    assert report.metrics.get("trained_tokens", 0) == sum(rollout.tokens for rollout in trained)


def test_no_verdict_at_all_stops_the_step(tiny_dir: Path, tmp_path: Path) -> None:
    loop, judge = build(tiny_dir, tmp_path)
    judge.drop = {prompt.key for prompt in PROMPTS}
    before = {name: value.clone() for name, value in loop.trainer.adapter().items()}
    with pytest.raises(NoVerdictError, match="8 groups"):
        loop.step(0)
    assert all(torch.equal(value, before[name]) for name, value in loop.trainer.adapter().items())


def comparable(report: StepReport) -> dict[str, float]:
    return {name: value for name, value in report.metrics.items() if not name.startswith("seconds")}


def test_a_resumed_run_takes_the_same_next_step(tiny_dir: Path, tmp_path: Path) -> None:
    loop, _ = build(tiny_dir, tmp_path / "one", prompts_per_step=4)
    everything_counts(loop)
    for step in range(3):
        loop.step(step)
    loop.trainer.save(tmp_path / "checkpoint")
    state = json.loads(json.dumps(loop.state_dict()))

    resumed, _ = build(tiny_dir, tmp_path / "two", prompts_per_step=4)
    everything_counts(resumed)
    resumed.trainer.load(tmp_path / "checkpoint")
    resumed.load_state_dict(state)
    for one in (loop, resumed):
        one.sampler = LocalSampler(tiny_dir, seed=7)
    straight, again = loop.step(3), resumed.step(3)
    assert comparable(straight) == pytest.approx(comparable(again), abs=1e-6)
    assert [group.key for group in straight.groups] == [group.key for group in again.groups]
    for name, value in loop.trainer.adapter().items():
        torch.testing.assert_close(value, resumed.trainer.adapter()[name], atol=1e-6, rtol=1e-6)


def test_only_the_newest_weights_are_kept(tiny_dir: Path, tmp_path: Path) -> None:
    loop, _ = build(tiny_dir, tmp_path)
    everything_counts(loop)
    for step in range(3):
        loop.step(step)
    assert [folder.name for folder in tmp_path.iterdir()] == ["weights-2"]
    assert loop.sampler.version == 2


def test_the_watch_raises_alarms_against_the_runs_own_beginning() -> None:
    calm = {"margin": 0.0, "common_share": 0.1, "completion_tokens": 20.0, "entropy": 0.5, "mismatch_kl": 1e-4}
    for change, rule in [
        ({"margin": 0.5}, "reward_jump"),
        ({"common_share": 0.9}, "collapse"),
        ({"completion_tokens": 80.0}, "length"),
        ({"entropy": 0.01}, "entropy"),
        ({"mismatch_kl": 0.1}, "mismatch"),
    ]:
        watch = Watch()
        for _ in range(5):
            assert watch.observe(calm) == []
        resumed = Watch()
        resumed.load_state_dict(json.loads(json.dumps(watch.state_dict())))
        assert [alarm.rule for alarm in resumed.observe(calm | change)] == [rule]


def test_common_share_counts_prompts_not_completions() -> None:
    assert common_share([["a", "a", "a"], ["b"], ["a", "c"], ["d"]]) == 0.5
    assert common_share([["a", "a"], ["b"]]) == 0.0
