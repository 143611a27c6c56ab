"""Owns one GRPO step: choose prompts, sample, judge, turn scores into gradients, step. Keeps no files but weights.

The trainer is never ahead of the sampler: weights are pushed before sampling whenever they differ, so every token is
trained at the version that sampled it, and a run resumed from a checkpoint needs nothing else.
"""

import shutil
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from statistics import fmean
from typing import Any

from rl.advantages import Scale, group_advantages, has_signal, scale_batch
from rl.curriculum import Curriculum
from rl.judge.base import CandidateVerdict, GroupVerdict, Judge, JudgeGroup
from rl.losses import denominator
from rl.render import Renderer
from rl.rollout.base import Sampler
from rl.trainer import Trainer, warmed_up
from rl.types import Datum, LossSpec, Prompt, Sample, SamplingParams, StepStats
from rl.watch import Alarm, Watch, WatchSpec, common_share


class NoVerdictError(RuntimeError):
    """The judge gave no usable answer for any group of a step: going on would only burn money."""


@dataclass(frozen=True, slots=True)
class GrpoConfig:
    """One step's shape.

    `temperature` above 1 samples, and trains, the policy softmax(logits / temperature): answers that the model hardly
    ever gives turn up more often. `right_at` is the reward from which a completion counts as right for the curriculum.
    Groups below `min_agreement` between shuffles are dropped, others weigh by it. Adam's first steps are as long as
    their rate whatever the gradient; `warmup_steps` keeps them from undoing the warm start. While fewer than
    `prompts_per_step` groups can be trained on, a step asks for others, at most `refill` of them. Prompts of
    several tasks are interleaved by `task_weights` (a task that is not named weighs 1).
    """

    weights_dir: Path
    prompts_per_step: int = 16
    group_size: int = 8
    refill: int = 0
    max_tokens: int = 256
    temperature: float = 1.0
    lr: float = 1.3e-4
    warmup_steps: int = 8
    loss: LossSpec = field(default_factory=LossSpec)
    scale: Scale = "mean"
    right_at: float = 0.999
    min_agreement: float = 0.0
    seed: int = 0
    task_weights: Mapping[str, float] = field(default_factory=dict)
    watch: WatchSpec = field(default_factory=WatchSpec)


@dataclass(frozen=True, slots=True)
class RolloutReport:
    """One completion (or the anchor) with its scores, for people to read; `datum` is what was trained of it."""

    completion: str
    tokens: int
    finish_reason: str | None
    reward: float | None
    advantage: float | None
    criteria: dict[str, float]
    reason: str
    datum: Datum | None = None


@dataclass(frozen=True, slots=True)
class GroupReport:
    """One prompt's group. `dropped` says why it was not trained on (None: it was)."""

    key: str
    rollouts: tuple[RolloutReport, ...]
    anchor: RolloutReport | None
    agreement: float
    dropped: str | None

    @property
    def kept(self) -> bool:
        return self.dropped is None


@dataclass(frozen=True, slots=True)
class StepReport:
    """One finished step."""

    step: int
    metrics: dict[str, float]
    groups: list[GroupReport]
    alarms: list[Alarm]


@dataclass(slots=True)
class _Group:
    """A group on its way through the step."""

    prompt: Prompt
    tokens: list[int]
    samples: list[Sample]
    texts: list[str]
    verdict: GroupVerdict | None = None
    advantages: list[float] | None = None
    data: list[Datum | None] = field(default_factory=list)
    dropped: str | None = None


class Grpo:
    """The loop's object. `step` may be called with any step number; resume is `load_state_dict` and the next number.

    `expected` is what is known beforehand of how often a prompt, by its key, is got right.
    """

    def __init__(
        self,
        trainer: Trainer,
        sampler: Sampler,
        judge: Judge,
        renderer: Renderer,
        prompts: Sequence[Prompt],
        config: GrpoConfig,
        expected: Mapping[str, float] | None = None,
    ) -> None:
        self.trainer, self.sampler, self.judge, self.renderer = trainer, sampler, judge, renderer
        self.config = config
        self.watch = Watch(config.watch)
        tasks = {prompt.key: prompt.task for prompt in prompts}
        self.curriculum = Curriculum(
            [prompt.key for prompt in prompts], config.group_size, config.seed, expected, tasks, config.task_weights
        )
        self._prompts = {prompt.key: prompt for prompt in prompts}
        self._rendered: dict[str, list[int]] = {}
        self._loss = replace(config.loss, temperature=config.temperature)
        self._sampling = SamplingParams(
            max_tokens=config.max_tokens,
            temperature=config.temperature,
            stop_token_ids=tuple(sorted(renderer.eos_ids)),
        )

    def step(self, step: int) -> StepReport:
        """Do step `step`. Raises SamplerError, NoVerdictError, MaskError, TrainingError or what the spend meter
        raises; none of them leaves half a step in the weights."""
        clock = _Clock()
        with clock.at("push"):
            self.push_weights()
        groups = self._groups(step, clock)
        with clock.at("train"):
            stats, norm = self._train(groups)
        for group in groups:
            if group.verdict is not None:
                right = sum(reward >= self.config.right_at for reward in group.verdict.rewards)
                self.curriculum.record(group.prompt.key, right, len(group.texts), step)
        metrics = _metrics(groups, stats, norm) | clock.seconds
        metrics["groups_refilled"] = max(0.0, metrics["groups"] - self.config.prompts_per_step)
        return StepReport(step, metrics, [_report(group) for group in groups], self.watch.observe(metrics))

    def push_weights(self) -> None:
        """Give the sampler the trainer's weights, if it does not hold them."""
        version = self.trainer.steps
        if self.sampler.version == version:
            return
        folder = self.config.weights_dir / f"weights-{version}"
        self.trainer.export_merged(folder)
        self.sampler.push(folder, version)
        for other in self.config.weights_dir.glob("weights-*"):
            if other != folder:
                shutil.rmtree(other, ignore_errors=True)

    def state_dict(self) -> dict[str, Any]:
        """JSON: what the loop has learned beside the weights."""
        return {"curriculum": self.curriculum.state_dict(), "watch": self.watch.state_dict()}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self.curriculum.load_state_dict(state["curriculum"])
        self.watch.load_state_dict(state["watch"])

    def _groups(self, step: int, clock: "_Clock") -> list[_Group]:
        """The step's groups, judged and weighed; where too few have something to teach, others beside them."""
        groups: list[_Group] = []
        count, left = self.config.prompts_per_step, self.config.refill
        while count:
            with clock.at("sample"):
                new = self._sample(step, count, [group.prompt.key for group in groups])
            with clock.at("judge"):
                self._judge(new)
            self._weigh(new)
            groups += new
            if all(group.verdict is None for group in groups):
                why = getattr(self.judge, "last_error", None) or "see the log"
                raise NoVerdictError(f"the judge gave no usable answer for any of {len(groups)} groups: {why}")
            missing = self.config.prompts_per_step - sum(group.advantages is not None for group in groups)
            count = min(missing, left) if new else 0
            left -= count
        self._scale(groups)
        return groups

    def _sample(self, step: int, count: int, taken: Sequence[str]) -> list[_Group]:
        chosen = [self._prompts[key] for key in self.curriculum.choose(count, step, taken)]
        if not chosen:
            return []
        tokens = [self._tokens(prompt) for prompt in chosen]
        drawn = self.sampler.sample(tokens, self.config.group_size, self._sampling)
        return [
            _Group(prompt, ids, samples, [self.renderer.decode(sample.tokens) for sample in samples])
            for prompt, ids, samples in zip(chosen, tokens, drawn, strict=True)
        ]

    def _tokens(self, prompt: Prompt) -> list[int]:
        if prompt.key not in self._rendered:
            self._rendered[prompt.key] = self.renderer.prompt(prompt.messages, prompt.tools)
        return self._rendered[prompt.key]

    def _judge(self, groups: Sequence[_Group]) -> None:
        asked = [JudgeGroup(g.prompt.key, g.prompt.messages, g.texts, g.prompt.anchor) for g in groups]
        for group, verdict in zip(groups, self.judge.score(asked), strict=True):
            group.verdict = verdict

    def _weigh(self, groups: Sequence[_Group]) -> None:
        """Set advantages, or why a group is dropped."""
        for group in groups:
            verdict = group.verdict
            if verdict is None:
                group.dropped = "no verdict"
            elif not has_signal(verdict.rewards, verdict.noise):
                group.dropped = "no variance"
            elif verdict.agreement < self.config.min_agreement:
                group.dropped = f"agreement {verdict.agreement:.2f}"
            else:
                # Truncated rollouts count in the mean, and are left out of the loss in _data.
                raw = group_advantages(verdict.rewards, self.config.scale)
                group.advantages = [value * verdict.agreement for value in raw]

    def _scale(self, groups: Sequence[_Group]) -> None:
        """What is divided by a σ of the whole step waits for all of its groups."""
        kept = [group for group in groups if group.advantages is not None]
        if self.config.scale == "batch_std" and kept:
            for group, scaled in zip(kept, scale_batch([g.advantages or [] for g in kept]), strict=True):
                group.advantages = scaled

    def _data(self, index: int, group: _Group) -> list[Datum | None]:
        """One entry a sample; None for those that were cut off, which are not trained."""
        advantages = group.advantages or [0.0] * len(group.samples)
        return [
            self.renderer.rollout(group.tokens, sample, advantage, index) if sample.finish_reason == "stop" else None
            for sample, advantage in zip(group.samples, advantages, strict=True)
        ]

    def _train(self, groups: Sequence[_Group]) -> tuple[StepStats | None, float]:
        for index, group in enumerate(groups):
            group.data = self._data(index, group)
        sampled = [datum for group in groups for datum in group.data if datum is not None]
        data = [datum for group in groups if group.advantages for datum in group.data if datum is not None]
        if not data:
            return None, 0.0
        # Divided by all that was sampled: where few groups have something to teach, the step is a small one.
        divisor = denominator(self._loss, sampled)
        self.trainer.discard()  # what a step that failed half-way may have left
        stats = self.trainer.forward_backward(data, replace(self._loss, denominator=divisor))
        return stats, self.trainer.optim_step(warmed_up(self.config.lr, self.trainer.steps, self.config.warmup_steps))


class _Clock:
    """Seconds spent by stage."""

    def __init__(self) -> None:
        self.seconds: dict[str, float] = {}

    @contextmanager
    def at(self, stage: str) -> Iterator[None]:
        began = time.perf_counter()
        yield
        name = f"seconds_{stage}"
        self.seconds[name] = self.seconds.get(name, 0.0) + time.perf_counter() - began


def _metrics(groups: Sequence[_Group], stats: StepStats | None, norm: float) -> dict[str, float]:
    """One step's figures; those that do not exist this step (no anchor, nothing trained) are left out."""
    judged = [group for group in groups if group.verdict is not None]
    rewards = [reward for group in judged for reward in (group.verdict.rewards if group.verdict else [])]
    margins = [
        fmean(group.verdict.rewards) - group.verdict.anchor.reward
        for group in judged
        if group.verdict and group.verdict.anchor
    ]
    samples = [sample for group in groups for sample in group.samples]
    metrics = {
        "reward_mean": fmean(rewards),
        "groups": float(len(groups)),
        "groups_kept": float(sum(group.dropped is None for group in groups)),
        "groups_no_variance": float(sum(group.dropped == "no variance" for group in groups)),
        "groups_no_verdict": float(sum(group.verdict is None for group in groups)),
        "completion_tokens": fmean(len(sample.tokens) for sample in samples),
        "truncated_share": fmean(sample.finish_reason == "length" for sample in samples),
        "sampled_tokens": float(sum(len(sample.tokens) for sample in samples)),
        "common_share": common_share([group.texts for group in groups]),
        "judge_agreement": fmean(group.verdict.agreement for group in judged if group.verdict),
        # −E[log π] of the policy's own samples is its entropy.
        "entropy": -sum(sum(sample.logprobs) for sample in samples) / sum(len(sample.tokens) for sample in samples),
        "grad_norm": norm,
    }
    if margins:
        metrics["margin"] = fmean(margins)
    if stats:
        metrics |= {
            "loss": stats.loss,
            "trained_tokens": float(stats.trained_tokens),
            "packed_tokens": float(stats.packed_tokens),
            "plain_tokens": float(stats.plain_tokens),
            "clipped_share": stats.clipped_share,
        }
        if stats.mismatch_kl is not None:
            metrics["mismatch_kl"] = stats.mismatch_kl
    return metrics


def _report(group: _Group) -> GroupReport:
    verdict, count = group.verdict, len(group.texts)
    scores: Sequence[CandidateVerdict | None] = verdict.candidates if verdict else [None] * count
    advantages: Sequence[float | None] = group.advantages or [None] * count
    trained: Sequence[Datum | None] = group.data if group.advantages else [None] * count
    rollouts = tuple(
        replace(_rollout_report(text, score, len(sample.tokens), sample.finish_reason, advantage), datum=datum)
        for text, sample, score, advantage, datum in zip(
            group.texts, group.samples, scores, advantages, trained, strict=True
        )
    )
    anchor = None
    if group.prompt.anchor is not None:
        anchor = _rollout_report(group.prompt.anchor, verdict.anchor if verdict else None)
    return GroupReport(group.prompt.key, rollouts, anchor, verdict.agreement if verdict else 0.0, group.dropped)


def _rollout_report(
    text: str,
    score: CandidateVerdict | None,
    tokens: int = 0,
    finish_reason: str | None = None,
    advantage: float | None = None,
) -> RolloutReport:
    if score is None:
        return RolloutReport(text, tokens, finish_reason, None, advantage, {}, "")
    criteria = score.criteria | {f"veto:{name}": float(flag) for name, flag in score.vetoes.items()}
    reason = score.reason or (f"failed checks: {', '.join(score.failed_checks)}" if score.failed_checks else "")
    return RolloutReport(text, tokens, finish_reason, score.reward, advantage, criteria, reason)
