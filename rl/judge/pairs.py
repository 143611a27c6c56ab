"""Owns blind pairs: two answers to one prompt, judged in both orders. Makes no decision from them."""

import asyncio
from collections.abc import Sequence
from dataclasses import dataclass

from gateway.providers.spec import ChatModel
from rl.judge.rubric import Rubric
from rl.judge.scorer import Cache, Scorer, Spend


@dataclass(frozen=True, slots=True)
class Pair:
    """Two answers to the same messages."""

    key: str
    messages: Sequence[dict[str, object]]
    left: str
    right: str


@dataclass(frozen=True, slots=True)
class PairVerdict:
    """`score` is the left one's: 1 won, ½ tied, 0 lost, the mean of both orders. `agreed`: both said the same."""

    score: float
    agreed: bool
    reason: str = ""


class PairJudge:
    """Judges pairs. Equal answers tie, and one that fails a check loses to one that passes: both without a call."""

    def __init__(
        self,
        model: ChatModel,
        rubric: Rubric,
        *,
        judge: str = "judge",
        concurrency: int = 8,
        spend: Spend | None = None,
        cache: Cache | None = None,
    ) -> None:
        self._scorer = Scorer(model, rubric, judge=judge, concurrency=concurrency, spend=spend, cache=cache)
        self._runner = asyncio.Runner()

    def judge(self, pairs: Sequence[Pair]) -> list[PairVerdict | None]:
        """One verdict per pair, in order; None where the judge gave no usable answer."""
        return self._runner.run(self._all(pairs))

    def close(self) -> None:
        """Release the event loop. May be called twice."""
        self._runner.close()

    async def _all(self, pairs: Sequence[Pair]) -> list[PairVerdict | None]:
        async with asyncio.TaskGroup() as tasks:
            running = [tasks.create_task(self._one(pair)) for pair in pairs]
        return [task.result() for task in running]

    async def _one(self, pair: Pair) -> PairVerdict | None:
        if pair.left == pair.right:
            return PairVerdict(0.5, True, "the answers are identical")
        fails = [self._scorer.rubric.failed_checks(output) for output in (pair.left, pair.right)]
        if any(fails):
            names = ", ".join(sorted({name for failed in fails for name in failed}))
            return PairVerdict(_won(float(not fails[0]), float(not fails[1])), True, f"checks failed: {names}")
        forth = await self._scorer.score(pair.messages, [pair.left, pair.right])
        back = await self._scorer.score(pair.messages, [pair.right, pair.left])
        if forth is None or back is None:
            return None
        first = _won(forth[0].reward, forth[1].reward)
        second = _won(back[1].reward, back[0].reward)
        return PairVerdict((first + second) / 2, first == second, forth[0].reason)


def _won(left: float, right: float) -> float:
    if abs(left - right) < 1e-9:
        return 0.5
    return float(left > right)
