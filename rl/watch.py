"""Owns the watch over a run: figures that tell of reward hacking, collapse or a broken sampler. Stops nothing itself.

Every rule compares with the run's own beginning or its moving average, so that it needs no knowledge of the task.
"""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any


@dataclass(frozen=True, slots=True)
class Alarm:
    """One finding: which rule, and a line that says what was seen and what it may mean."""

    rule: str
    message: str


@dataclass(frozen=True, slots=True)
class WatchSpec:
    """When to raise an alarm. `settle` steps at the start are only learned from."""

    settle: int = 3
    margin_jump: float = 0.35
    common_share: float = 0.4
    length_ratio: float = 2.5
    entropy_ratio: float = 0.1
    mismatch_ratio: float = 10.0
    mismatch_floor: float = 5e-3


@dataclass
class Watch:
    """Keeps the first steps' means as a baseline and the margin's moving average."""

    spec: WatchSpec = field(default_factory=WatchSpec)
    steps: int = 0
    baseline: dict[str, float] = field(default_factory=dict)
    margin: float | None = None

    def observe(self, metrics: Mapping[str, float]) -> list[Alarm]:
        """Look at one step's metrics and return what is alarming about them."""
        self.steps += 1
        alarms: list[Alarm] = []
        if self.steps > self.spec.settle:
            alarms = [alarm for alarm in self._rules(metrics) if alarm]
        else:
            for name in ("common_share", "completion_tokens", "entropy", "mismatch_kl"):
                if name in metrics:
                    before = self.baseline.get(name, 0.0)
                    self.baseline[name] = before + (metrics[name] - before) / self.steps
        if "margin" in metrics:
            self.margin = metrics["margin"] if self.margin is None else 0.8 * self.margin + 0.2 * metrics["margin"]
        return alarms

    def state_dict(self) -> dict[str, Any]:
        return {"steps": self.steps, "baseline": dict(self.baseline), "margin": self.margin}

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        self.steps, self.baseline, self.margin = int(state["steps"]), dict(state["baseline"]), state["margin"]

    def _rules(self, metrics: Mapping[str, float]) -> list[Alarm | None]:
        return [self._jump(metrics), self._common(metrics), self._length(metrics), self._entropy(metrics),
                self._mismatch(metrics)]  # fmt: skip

    def _jump(self, metrics: Mapping[str, float]) -> Alarm | None:
        now = metrics.get("margin")
        if now is None or self.margin is None or now - self.margin <= self.spec.margin_jump:
            return None
        return Alarm(
            "reward_jump",
            f"the reward's margin over the anchor jumped from {self.margin:.2f} to {now:.2f}: read the top samples",
        )

    def _common(self, metrics: Mapping[str, float]) -> Alarm | None:
        now, before = metrics.get("common_share", 0.0), self.baseline.get("common_share", 0.0)
        if now - before <= self.spec.common_share:
            return None
        return Alarm(
            "collapse",
            f"{now:.0%} of different prompts got the same completion (at the start {before:.0%}): the policy collapses",
        )

    def _length(self, metrics: Mapping[str, float]) -> Alarm | None:
        now, before = metrics.get("completion_tokens", 0.0), self.baseline.get("completion_tokens", 0.0)
        if not before or 1 / self.spec.length_ratio <= now / before <= self.spec.length_ratio:
            return None
        return Alarm(
            "length", f"completions have {now:.0f} tokens, at the start {before:.0f}: reward may follow length"
        )

    def _entropy(self, metrics: Mapping[str, float]) -> Alarm | None:
        now, before = metrics.get("entropy"), self.baseline.get("entropy", 0.0)
        if now is None or now >= self.spec.entropy_ratio * before:
            return None
        return Alarm("entropy", f"entropy fell from {before:.3f} to {now:.3f} nats a token: nothing new gets sampled")

    def _mismatch(self, metrics: Mapping[str, float]) -> Alarm | None:
        now = metrics.get("mismatch_kl")
        bound = max(self.spec.mismatch_ratio * self.baseline.get("mismatch_kl", 0.0), self.spec.mismatch_floor)
        if now is None or now <= bound:
            return None
        return Alarm("mismatch", f"sampler and trainer disagree by {now:.1e} nats a token (limit {bound:.1e})")


def common_share(completions: Sequence[Sequence[str]]) -> float:
    """The largest share of prompts (one inner sequence each) that have some completion in common; 0 for one prompt."""
    if len(completions) < 2:
        return 0.0
    seen = Counter(text for group in completions for text in set(group))
    count = max(seen.values(), default=0)
    return count / len(completions) if count > 1 else 0.0
