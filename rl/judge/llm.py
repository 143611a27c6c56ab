"""Owns judging groups with a model: shuffles, the anchor blind among the candidates, agreement between shuffles."""

import asyncio
import hashlib
import random
from collections.abc import Sequence
from itertools import combinations

from gateway.providers.spec import ChatModel
from rl.judge.base import CandidateVerdict, GroupVerdict, Judge, JudgeGroup
from rl.judge.rubric import Rubric
from rl.judge.scorer import Cache, Scorer, Spend


class LlmJudge(Judge):
    """Scores each group in `shuffles` random orders (seeded by group and content: the same group, the same orders).

    `judge` names the model in the cache's keys. `spend` is called with every paid answer and ends judging by raising.
    """

    def __init__(
        self,
        model: ChatModel,
        rubric: Rubric,
        *,
        judge: str = "judge",
        shuffles: int = 1,
        concurrency: int = 8,
        seed: int = 0,
        spend: Spend | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._scorer = Scorer(model, rubric, judge=judge, concurrency=concurrency, spend=spend, cache=cache)
        self._shuffles, self._seed = shuffles, seed
        # One loop for the judge's whole life, because a provider's connections belong to the loop that opened them.
        self._runner = asyncio.Runner()

    @property
    def calls(self) -> int:
        """Paid answers so far."""
        return self._scorer.calls

    @property
    def last_error(self) -> str | None:
        """Why the last dropped group was dropped."""
        return self._scorer.last_error

    def score(self, groups: Sequence[JudgeGroup]) -> list[GroupVerdict | None]:
        return self._runner.run(self.score_async(groups))

    async def score_async(self, groups: Sequence[JudgeGroup]) -> list[GroupVerdict | None]:
        """As `score`, inside the caller's event loop (use one or the other with one judge)."""
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._group(group)) for group in groups]
        return [task.result() for task in running]

    def close(self) -> None:
        self._runner.close()

    async def _group(self, group: JudgeGroup) -> GroupVerdict | None:
        outputs = [*group.candidates] + ([] if group.anchor is None else [group.anchor])
        rounds: list[list[CandidateVerdict]] = []
        for turn in range(self._shuffles):
            order = list(range(len(outputs)))
            self._random(group, turn).shuffle(order)
            verdicts = await self._scorer.score(group.messages, [outputs[index] for index in order])
            if verdicts is None:
                return None
            back = dict(zip(order, verdicts, strict=True))
            rounds.append([back[index] for index in range(len(outputs))])
        merged = [_merge([verdicts[index] for verdicts in rounds]) for index in range(len(outputs))]
        anchor = merged.pop() if group.anchor is not None else None
        rewards = [[verdict.reward for verdict in verdicts] for verdicts in rounds]
        return GroupVerdict(tuple(merged), anchor, agreement(rewards), noise(rewards))

    def _random(self, group: JudgeGroup, turn: int) -> random.Random:
        text = "\x00".join([str(self._seed), str(turn), group.key, *sorted(group.candidates)])
        return random.Random(hashlib.sha256(text.encode()).digest())


def _merge(rounds: Sequence[CandidateVerdict]) -> CandidateVerdict:
    """The mean over shuffles; a veto holds when most shuffles raise it."""
    first, count = rounds[0], len(rounds)
    if count == 1:
        return first
    return CandidateVerdict(
        sum(verdict.reward for verdict in rounds) / count,
        {name: sum(verdict.criteria[name] for verdict in rounds) / count for name in first.criteria},
        {name: 2 * sum(verdict.vetoes[name] for verdict in rounds) > count for name in first.vetoes},
        first.failed_checks,
        first.reason,
    )


def agreement(rounds: Sequence[Sequence[float]]) -> float:
    """Share of (pair of outputs, pair of rounds) ordered alike, ties included; 1 if there is nothing to compare."""
    alike = total = 0
    for one, other in combinations(rounds, 2):
        for i, j in combinations(range(len(one)), 2):
            total += 1
            alike += _sign(one[i] - one[j]) == _sign(other[i] - other[j])
    return alike / total if total else 1.0


def noise(rounds: Sequence[Sequence[float]]) -> float:
    """Mean absolute difference of an output's reward between two rounds."""
    gaps = [abs(a - b) for one, other in combinations(rounds, 2) for a, b in zip(one, other, strict=True)]
    return sum(gaps) / len(gaps) if gaps else 0.0


def _sign(value: float) -> int:
    return (value > 1e-9) - (value < -1e-9)
