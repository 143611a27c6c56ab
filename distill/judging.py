"""Owns the run's judge: groups for GRPO, blind pairs for validation and evaluation, one meter over both.

Must not turn a judge that fails into a verdict: too many dropped comparisons end the step, never lower its numbers.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

from sqlalchemy.orm import Session

from distill.answers import agreement, answer, references, same
from distill.context import RunContext
from distill.metering import Meter, MeteredChat
from distill.outcomes import Paused
from gateway.core.errors import StepdownError
from gateway.models import DatasetRow, Run
from gateway.providers import chat_model
from gateway.routing.repository import upstream_spec
from gateway.rubrics import service as rubrics
from gateway.runs.service import allowed_judge, judge_model
from rl.judge.llm import LlmJudge
from rl.judge.pairs import Pair, PairJudge, PairVerdict
from rl.judge.rubric import Rubric

if TYPE_CHECKING:
    from distill.lab import Lab

MOST_DROPPED = 0.2
"""Share of comparisons without a usable answer beyond which the judge counts as failing."""


class RunJudge:
    """The judge of one run, with its rubric. Asks only an upstream whose terms still allow it."""

    def __init__(self, ctx: RunContext) -> None:
        self._ctx = ctx
        self._spec, content = ctx.commit(self._facts)
        self.rubric = Rubric.from_dict(content)
        config = ctx.config
        self.meter = Meter(self._spec, ctx.run_id, cap=config.judge_spend_cap_usd, call_cap=config.judge_call_cap)
        self._cache: dict[str, Any] = {}
        self._made: list[LlmJudge | PairJudge] = []

    def _facts(self, session: Session, run: Run) -> tuple[Any, dict[str, Any]]:
        upstream = allowed_judge(session, run.project_id, run.judge_upstream_id)
        model = judge_model(session, upstream, run.task_id)
        spec = upstream_spec(session, run.project_id, upstream.id, model)
        assert run.rubric_id is not None, "freeze has set it"
        row = rubrics.get(session, run.project_id, run.rubric_id)
        return spec, {"criteria": row.criteria, "vetoes": row.vetoes, "checks": row.checks}

    @cached_property
    def groups(self) -> LlmJudge:
        """Scores groups of rollouts."""
        config = self._ctx.config
        judge = LlmJudge(
            self._chat(),
            self.rubric,
            judge=self._spec.model,
            shuffles=config.judge_shuffles,
            concurrency=config.judge_concurrency,
            seed=config.seed,
            cache=self._cache,
        )
        self._made.append(judge)
        return judge

    @cached_property
    def pairs(self) -> PairJudge:
        """Compares two answers, blind and in both orders."""
        concurrency = self._ctx.config.judge_concurrency
        judge = PairJudge(self._chat(), self.rubric, judge=self._spec.model, concurrency=concurrency, cache=self._cache)
        self._made.append(judge)
        return judge

    def require_room(self) -> None:
        """After judging: raises Paused where a cap stopped it, so that what it left out is not taken for a result."""
        if self.meter.exhausted:
            raise Paused(f"{self.meter.exhausted} Raise it and resume the run.")

    def require_answers(self, asked: int, dropped: int) -> None:
        """After judging: raises Paused at a cap, StepdownError 502 where too many comparisons were dropped."""
        self.require_room()
        if asked and dropped / asked > MOST_DROPPED:
            raise StepdownError(
                502,
                "judge_failing",
                f"The judge {self._spec.model} gave no usable answer to {dropped} of {asked} comparisons.",
                hint="Look at the run's log for its answers, and at the upstream.",
            )

    def close(self) -> None:
        """Release connections. May be called twice."""
        while self._made:
            self._made.pop().close()

    def _chat(self) -> MeteredChat:
        # One client for each judge: its connections belong to that judge's event loop.
        return MeteredChat(chat_model(self._spec), self.meter)


def judged_pairs(
    lab: Lab,
    rows: Sequence[DatasetRow],
    answered: Sequence[str],
    expected: Sequence[str],
    *,
    wanted: Sequence[bool] | None = None,
) -> list[PairVerdict | None]:
    """The student's answers against the teacher's: 1 won, ½ tied, 0 lost; None: not wanted, or dropped.

    Answers that say the same tie without a call. Raises Paused, StepdownError.
    """
    asked = [place for place in range(len(rows)) if wanted is None or wanted[place]]
    pairs = [
        Pair(
            str(rows[place].id),
            rows[place].messages,
            expected[place] if same(answered[place], expected[place]) else answered[place],
            expected[place],
        )
        for place in asked
    ]
    verdicts = lab.judge.pairs.judge(pairs)
    lab.judge.require_answers(len(verdicts), sum(verdict is None for verdict in verdicts))
    found = dict(zip(asked, verdicts, strict=True))
    return [found.get(place) for place in range(len(rows))]


def mean_score(verdicts: Sequence[PairVerdict | None]) -> float:
    """Mean of the judged pairs: ½ is as good as the teacher. 0 where none was judged."""
    scores = [verdict.score for verdict in verdicts if verdict is not None]
    return sum(scores) / len(scores) if scores else 0.0


def validate(lab: Lab, rows: Sequence[DatasetRow]) -> dict[str, float]:
    """How the current weights do on these rows: mean judged score against the teacher, agreement with it, and n.

    Raises Paused, StepdownError, as `judged_pairs`.
    """
    expected, texts = references(lab.renderer, rows), answer(lab, rows).texts
    judged = mean_score(judged_pairs(lab, rows, texts, expected))
    return {"judged": judged, "agreement": agreement(texts, expected), "n": float(len(rows))}
