"""Owns the choice of prompts to practise on: those that the model sometimes, and rather rarely, gets right.

A Beta posterior per prompt holds how often it is got right; Thompson sampling from it keeps looking at what is
unknown. Several tasks share each step by their weights. Knows no model; its state is JSON.
"""

import math
import random
from collections.abc import Collection, Mapping, Sequence
from typing import Any

_TRUST = 2.0  # an expected rate counts as this many completions
_MEMORY = 0.5  # the model changes: what was seen at a prompt's last visit counts half at the next
_AT_RANDOM = 0.5  # share of a step's prompts that is drawn blindly
_REST = 4  # visits to the same prompt are at least this many steps apart, if there are prompts enough


class Curriculum:
    """Chooses prompts by their key. Deterministic: seed, steps and outcomes give the choice.

    `expected` says of some prompts how often they should be got right (0 to 1), before any has been visited. `tasks`
    names the task of a key (default: all are one), `weights` a task's share of each step against the others' (default
    1; 0 leaves it out).
    """

    def __init__(
        self,
        keys: Sequence[str],
        group_size: int,
        seed: int = 0,
        expected: Mapping[str, float] | None = None,
        tasks: Mapping[str, str] | None = None,
        weights: Mapping[str, float] | None = None,
    ) -> None:
        if len(set(keys)) < len(keys):
            raise ValueError("two prompts share a key")
        if not keys:
            raise ValueError("there is no prompt to practise on")
        self._group_size, self._seed = group_size, seed
        self._task_of = {key: (tasks or {}).get(key, "") for key in keys}
        self._keys: dict[str, list[str]] = {}
        for key, task in self._task_of.items():
            self._keys.setdefault(task, []).append(key)
        self._weights = {task: (weights or {}).get(task, 1.0) for task in sorted(self._keys)}
        if min(self._weights.values()) < 0 or not any(self._weights.values()):
            raise ValueError(f"the tasks' weights are {self._weights}: none may be negative, and one must be positive")
        known = expected or {}
        # Per known prompt: times right, times wrong (decayed), step of the last visit.
        self._seen: dict[str, tuple[float, float, int]] = {
            key: (_TRUST * known[key], _TRUST * (1 - known[key]), -_REST) for key in keys if key in known
        }

    def choose(self, count: int, step: int, taken: Collection[str] = ()) -> list[str]:
        """The `count` prompts (fewer only if there are fewer) of which most is to be learned at this step, besides
        those that are `taken` for it already.

        A share of them is drawn from all others: what one kind of prompt teaches can cost another that was known,
        and only a look at it shows that.
        """
        draw = random.Random(f"{self._seed}:{step}:{len(taken)}" if taken else f"{self._seed}:{step}")
        used = set(taken)
        free = {task: [key for key in keys if key not in used] for task, keys in self._keys.items()}
        shares = self._shares(count, {task: len(keys) for task, keys in free.items()}, draw)
        return [key for task, share in shares.items() for key in self._choose(task, free[task], share, step, draw)]

    def record(self, key: str, right: int, of: int, step: int) -> None:
        """At this step `right` of `of` completions were right."""
        before_right, before_wrong, _ = self._seen.get(key, (0.0, 0.0, 0))
        self._seen[key] = (before_right * _MEMORY + right, before_wrong * _MEMORY + of - right, step)

    def pass_rate(self, key: str) -> float | None:
        """The posterior mean, or None for a prompt of which nothing is known."""
        if key not in self._seen:
            return None
        right, wrong, _ = self._seen[key]
        prior_right, prior_wrong = self._prior(self._task_of[key])
        return (prior_right + right) / (prior_right + right + prior_wrong + wrong)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": {key: list(value) for key, value in self._seen.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seen = {key: (right, wrong, int(last)) for key, (right, wrong, last) in state["seen"].items()}

    def _shares(self, count: int, free: Mapping[str, int], draw: random.Random) -> dict[str, int]:
        """How many prompts of each task: by its weight on average, however few a single step has room for."""
        shares = dict.fromkeys(self._weights, 0)
        while count > 0:
            owed = {task: weight for task, weight in self._weights.items() if weight > 0 and shares[task] < free[task]}
            if not owed:
                break
            # Marks one apart on a line that the weights divide: a random start makes every expectation exact.
            edge = draw.random() if len(owed) > 1 else 0.0
            scale, given = count / sum(owed.values()), 0
            for task, weight in owed.items():
                begin, edge = edge, edge + weight * scale
                part = min(math.floor(edge + 1e-9) - math.floor(begin + 1e-9), free[task] - shares[task])
                shares[task], given = shares[task] + part, given + part
            count -= given
        return shares

    def _choose(self, task: str, keys: Sequence[str], count: int, step: int, draw: random.Random) -> list[str]:
        prior_right, prior_wrong = self._prior(task)
        scored: list[tuple[bool, float, str]] = []
        for key in keys:
            right, wrong, last = self._seen.get(key, (0.0, 0.0, -_REST))
            rate = draw.betavariate(prior_right + right, prior_wrong + wrong)
            scored.append((step - last >= _REST, self._worth(rate), key))
        # Rested ones first, then by worth; the key breaks ties so that the order is always the same.
        scored.sort(key=lambda item: (-item[0], -item[1], item[2]))
        blind = int(count * _AT_RANDOM)
        best, others = scored[: count - blind], scored[count - blind :]
        rested = [item for item in others if item[0]]
        drawn = draw.sample(rested if len(rested) >= blind else others, blind)
        return [key for _, _, key in (*best, *drawn)]

    def _worth(self, rate: float) -> float:
        """Chance that a group has both right and wrong answers, tilted towards what is rarely right."""
        mixed = 1 - rate**self._group_size - (1 - rate) ** self._group_size
        return float(mixed * (1.5 - rate))

    def _prior(self, task: str) -> tuple[float, float]:
        """A weak prior at the pass rate of all prompts of the task seen so far: an unseen one is probably like them."""
        seen = [value for key, value in self._seen.items() if self._task_of.get(key) == task]
        right = sum(value[0] for value in seen)
        total = right + sum(value[1] for value in seen)
        mean = (right + 1) / (total + 2)
        return 0.5 + mean, 1.5 - mean
