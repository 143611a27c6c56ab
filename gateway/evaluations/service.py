"""Owns an evaluation's life: begun for a run, filled candidate by candidate, finished, then judged by the gate.

Must not commit, sample or ask a judge: `distill.phases.evaluate` does and reports here.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.jsontext import storable
from gateway.evaluations import repository
from gateway.evaluations.gate import GateOutcome, decide
from gateway.evaluations.stats import betting, wilson
from gateway.models import Evaluation, EvaluationOutput, Run

TEACHER = "teacher"


@dataclass(frozen=True)
class OutputRecord:
    """One answer to one test prompt. `score`: win 1, tie ½, loss 0 against the teacher; None: not judged."""

    row_id: UUID
    output: str
    matches: bool
    score: float | None
    reason: str | None = None


def begin(session: Session, run: Run) -> Evaluation:
    """The run's evaluation, with the bars it declared; the one begun before where there is one."""
    known = repository.of_run(session, run.id)
    if known is not None:
        return known
    if run.dataset_version_id is None:
        raise ValueError(f"run {run.id} has no frozen dataset version to be evaluated on")
    evaluation = Evaluation(
        project_id=run.project_id,
        run_id=run.id,
        dataset_version_id=run.dataset_version_id,
        bars=run.bars,
        candidates={},
        external={},
    )
    repository.add(session, evaluation)
    return evaluation


def record_candidate(
    session: Session,
    evaluation: Evaluation,
    candidate: str,
    outputs: Sequence[OutputRecord],
    details: Mapping[str, Any],
) -> dict[str, Any]:
    """Stores a candidate's outputs and states its numbers: agreement (Wilson), judged (betting). Returns its entry.

    `outputs` come in the order that the confidence sequence takes them in; the judged ones count for it.
    """
    rows = [
        EvaluationOutput(
            project_id=evaluation.project_id, evaluation_id=evaluation.id, candidate=candidate, **storable(vars(output))
        )
        for output in outputs
    ]
    repository.replace_outputs(session, evaluation.id, candidate, rows)
    scores = [output.score for output in outputs if output.score is not None]
    pairs = betting(scores)
    entry: dict[str, Any] = {
        **details,
        "n": len(outputs),
        "agreement": vars(wilson(sum(output.matches for output in outputs), len(outputs))),
        "judged": {
            "win_rate": pairs.value if scores else None,
            "low": pairs.low,
            "high": pairs.high,
            "n": pairs.n,
            "wins": sum(score > 0.5 for score in scores),
            "ties": scores.count(0.5),
            "losses": sum(score < 0.5 for score in scores),
        },
    }
    evaluation.candidates = {**evaluation.candidates, candidate: entry}
    return entry


def finish(session: Session, evaluation: Evaluation, winner: str, details: Mapping[str, Any]) -> None:
    """Closes the evaluation with the candidate that validation chose; `details` are added to the winner's entry."""
    entry = {**evaluation.candidates[winner], **details}
    evaluation.candidates = {**evaluation.candidates, winner: entry}
    evaluation.winner, evaluation.state, evaluation.finished_at = winner, "finished", now()
    session.flush()


def post_external(
    session: Session,
    project_id: UUID,
    evaluation_id: UUID,
    *,
    name: str,
    candidate: str,
    results: Mapping[UUID, bool],
) -> Evaluation:
    """Adds your own scorer's word on each test row for one candidate (or `teacher`, for comparison).

    All rows or none: a chosen part would be no evidence. Posting the same numbers again changes nothing; other
    numbers are refused. Raises StepdownError 404, 409, 422.
    """
    evaluation = get_evaluation(session, project_id, evaluation_id, lock=True)
    if evaluation.state != "finished":
        raise StepdownError(
            409,
            "evaluation_running",
            f"Evaluation {evaluation_id} has not finished.",
            hint="Wait until its run has succeeded, then post.",
        )
    if candidate != TEACHER and candidate not in evaluation.candidates:
        known = ", ".join([*evaluation.candidates, TEACHER])
        raise StepdownError(
            422,
            "candidate_unknown",
            f"There is no candidate {candidate!r}.",
            hint=f"One of {known}.",
            param="candidate",
        )
    missing = repository.test_row_ids(session, evaluation.dataset_version_id) ^ set(results)
    if missing:
        raise StepdownError(
            422,
            "external_rows",
            f"{len(missing)} rows are missing from `results` or not of this test split, {min(missing, key=str)} first.",
            hint="Post one true or false for every row of the candidate's outputs.",
            param="results",
        )
    posted = vars(wilson(sum(results.values()), len(results)))
    scores = evaluation.external.get(name, {})
    if candidate in scores and scores[candidate] != posted:
        raise StepdownError(
            409,
            "external_posted",
            f"{name!r} has been posted for {candidate!r} already, with other results.",
            hint="Evidence is not replaced: use another name, or evaluate again.",
        )
    evaluation.external = {**evaluation.external, name: {**scores, candidate: posted}}
    session.flush()
    return evaluation


def gate(evaluation: Evaluation, candidate: str | None = None) -> GateOutcome:
    """Whether the candidate (default: the winner) clears every bar. An unfinished evaluation is undecided."""
    chosen = candidate or evaluation.winner or "none"
    measured = evaluation.candidates.get(chosen) if evaluation.state == "finished" else None
    return decide(chosen, measured, evaluation.external, evaluation.bars)


def get_evaluation(session: Session, project_id: UUID, evaluation_id: UUID, *, lock: bool = False) -> Evaluation:
    """The evaluation, locked for a change if asked. Raises StepdownError 404."""
    evaluation = repository.get(session, project_id, evaluation_id, lock=lock)
    if evaluation is None:
        raise not_found("evaluation", evaluation_id)
    return evaluation
