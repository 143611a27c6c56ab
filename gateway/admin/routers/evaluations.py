"""Owns the routes of evidence: outputs, a scorer of one's own, release."""

from __future__ import annotations

from typing import Annotated
from uuid import UUID

from fastapi import Query, status

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import evaluations as repository
from gateway.admin.schemas.evaluations import (
    BarOutcomeOut,
    EvaluationOut,
    ExternalIn,
    Gate,
    OutputOut,
    Released,
    ReleaseIn,
)
from gateway.core.errors import not_found
from gateway.evaluations import service as evaluations
from gateway.evaluations.gate import GateOutcome
from gateway.models import Evaluation
from gateway.students import service as students

router = admin_router("evaluations", "/projects/{project_id}/evaluations")


def evaluation_out(evaluation: Evaluation) -> EvaluationOut:
    """The evaluation with the gate's word on it."""
    verdict = evaluations.gate(evaluation) if evaluation.state == "finished" else None
    own = ("id", "run_id", "state", "winner", "candidates", "bars", "external", "created_at", "finished_at")
    return EvaluationOut(
        **{name: getattr(evaluation, name) for name in own},
        passed=verdict.passed if verdict else None,
        gate=_gate(verdict) if verdict else None,
    )


def _gate(verdict: GateOutcome) -> Gate:
    return Gate(
        candidate=verdict.candidate,
        outcome=verdict.outcome,
        passed=verdict.passed,
        bars=[BarOutcomeOut.model_validate(bar) for bar in verdict.bars],
    )


async def _found(db: Database, project_id: UUID, evaluation_id: UUID) -> Evaluation:
    evaluation = await repository.one(db, project_id, evaluation_id)
    if evaluation is None:
        raise not_found("evaluation", evaluation_id)
    return evaluation


@router.get("/{evaluation_id}")
async def get_evaluation(project_id: ProjectId, evaluation_id: UUID, db: Database) -> EvaluationOut:
    """One evaluation."""
    return evaluation_out(await _found(db, project_id, evaluation_id))


@router.get("/{evaluation_id}/outputs")
async def list_outputs(
    project_id: ProjectId,
    evaluation_id: UUID,
    db: Database,
    *,
    candidate: Annotated[str | None, Query(max_length=100)] = None,
    limit: Annotated[int, Query(ge=1, le=5000)] = 2000,
    offset: Annotated[int, Query(ge=0)] = 0,
) -> list[OutputOut]:
    """Answers beside their references, in the order of the test split."""
    await _found(db, project_id, evaluation_id)
    return await repository.outputs(db, project_id, evaluation_id, candidate=candidate, limit=limit, offset=offset)


@router.post("/{evaluation_id}/external")
async def add_external(project_id: ProjectId, evaluation_id: UUID, body: ExternalIn, db: Database) -> Gate:
    """Records right or wrong by your own scorer, and answers whether the evidence now suffices."""
    evaluation = await db.run_sync(
        lambda session: evaluations.post_external(
            session, project_id, evaluation_id, name=body.name, candidate=body.candidate, results=body.results
        )
    )
    await db.commit()
    return _gate(evaluations.gate(evaluation, None if body.candidate == evaluations.TEACHER else body.candidate))


@router.post("/{evaluation_id}/release", status_code=status.HTTP_201_CREATED)
async def release(project_id: ProjectId, evaluation_id: UUID, db: Database, body: ReleaseIn | None = None) -> Released:
    """Makes a student of the winner, or of the candidate named, and asks for an engine. Refused below the bars."""
    candidate = body.candidate if body else None
    student, deployment = await db.run_sync(
        lambda session: students.release(session, project_id, evaluation_id, candidate)
    )
    await db.commit()
    return Released(student_id=student.id, deployment_id=deployment.id)
