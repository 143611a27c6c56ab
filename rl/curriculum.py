"""Owns the choice of prompts to practise on: those that the model sometimes, and rather rarely, gets right.

A Beta posterior per prompt holds how often it is got right; Thompson sampling from it keeps looking at what is
unknown. Knows no model; its state is JSON.
"""

import random
from collections.abc import Mapping, Sequence
from typing import Any

_TRUST = 2.0  # an expected rate counts as this many completions
_MEMORY = 0.5  # the model changes: what was seen at a prompt's last visit counts half at the next
_AT_RANDOM = 0.5  # share of a step's prompts that is drawn blindly
_REST = 4  # visits to the same prompt are at least this many steps apart, if there are prompts enough


class Curriculum:
    """Chooses prompts by their key. Deterministic: seed, steps and outcomes give the choice.

    `expected` says of some prompts how often they should be got right (0 to 1), before any has been visited.
    """

    def __init__(
        self, keys: Sequence[str], group_size: int, seed: int = 0, expected: Mapping[str, float] | None = None
    ) -> None:
        if len(set(keys)) < len(keys):
            raise ValueError("two prompts share a key")
        if not keys:
            raise ValueError("there is no prompt to practise on")
        self._keys, self._group_size, self._seed = list(keys), group_size, seed
        known = expected or {}
        # Per known prompt: times right, times wrong (decayed), step of the last visit.
        self._seen: dict[str, tuple[float, float, int]] = {
            key: (_TRUST * known[key], _TRUST * (1 - known[key]), -_REST) for key in keys if key in known
        }

    def choose(self, count: int, step: int, taken: Sequence[str] = ()) -> list[str]:
        """The `count` prompts (fewer only if there are fewer) of which most is to be learned at this step, besides
        those that are `taken` for it already.

        A share of them is drawn from all others: what one kind of prompt teaches can cost another that was known,
        and only a look at it shows that.
        """
        draw = random.Random(f"{self._seed}:{step}:{len(taken)}" if taken else f"{self._seed}:{step}")
        prior_right, prior_wrong = self._prior()
        scored: list[tuple[bool, float, str]] = []
        gone = set(taken)
        for key in self._keys:
            if key in gone:
                continue
            right, wrong, last = self._seen.get(key, (0.0, 0.0, -_REST))
            rate = draw.betavariate(prior_right + right, prior_wrong + wrong)
            scored.append((step - last >= _REST, self._worth(rate), key))
        # Rested ones first, then by worth; the key breaks ties so that the order is always the same.
        scored.sort(key=lambda item: (-item[0], -item[1], item[2]))
        count = min(count, len(scored))
        blind = int(count * _AT_RANDOM)
        best, others = scored[: count - blind], scored[count - blind :]
        rested = [item for item in others if item[0]]
        drawn = draw.sample(rested if len(rested) >= blind else others, blind)
        return [key for _, _, key in (*best, *drawn)]

    def record(self, key: str, right: int, of: int, step: int) -> None:
        """At this step `right` of `of` completions were right."""
        before_right, before_wrong, _ = self._seen.get(key, (0.0, 0.0, 0))
        self._seen[key] = (before_right * _MEMORY + right, before_wrong * _MEMORY + of - right, step)

    def pass_rate(self, key: str) -> float | None:
        """The posterior mean, or None for a prompt of which nothing is known."""
        if key not in self._seen:
            return None
        right, wrong, _ = self._seen[key]
        prior_right, prior_wrong = self._prior()
        return (prior_right + right) / (prior_right + right + prior_wrong + wrong)

    def state_dict(self) -> dict[str, Any]:
        return {"seen": {key: list(value) for key, value in self._seen.items()}}

    def load_state_dict(self, state: dict[str, Any]) -> None:
        self._seen = {key: (right, wrong, int(last)) for key, (right, wrong, last) in state["seen"].items()}

    def _worth(self, rate: float) -> float:
        """Chance that a group has both right and wrong answers, tilted towards what is rarely right."""
        mixed = 1 - rate**self._group_size - (1 - rate) ** self._group_size
        return float(mixed * (1.5 - rate))

    def _prior(self) -> tuple[float, float]:
        """A weak prior at the pass rate of all prompts seen so far: an unseen prompt is probably like the others."""
        right = sum(value[0] for value in self._seen.values())
        total = right + sum(value[1] for value in self._seen.values())
        mean = (right + 1) / (total + 2)
        return 0.5 + mean, 1.5 - mean
