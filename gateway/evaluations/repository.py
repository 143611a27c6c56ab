"""SQL of evaluations, always within one project."""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from sqlalchemy import Row, delete, select
from sqlalchemy.orm import Session

from gateway.models import DatasetRow, Evaluation, EvaluationOutput


def add(session: Session, evaluation: Evaluation) -> None:
    session.add(evaluation)
    session.flush()


def get(session: Session, project_id: UUID, evaluation_id: UUID, *, lock: bool = False) -> Evaluation | None:
    query = select(Evaluation).where(Evaluation.project_id == project_id, Evaluation.id == evaluation_id)
    return session.scalars(query.with_for_update() if lock else query).one_or_none()


def of_run(session: Session, run_id: UUID) -> Evaluation | None:
    return session.scalars(select(Evaluation).where(Evaluation.run_id == run_id)).one_or_none()


def replace_outputs(session: Session, evaluation_id: UUID, candidate: str, outputs: Sequence[EvaluationOutput]) -> None:
    """The candidate's outputs, instead of any that an interrupted attempt left."""
    session.execute(
        delete(EvaluationOutput).where(
            EvaluationOutput.evaluation_id == evaluation_id, EvaluationOutput.candidate == candidate
        )
    )
    session.add_all(outputs)
    session.flush()


def outputs(session: Session, evaluation_id: UUID, candidate: str) -> Sequence[Row[EvaluationOutput, DatasetRow]]:
    """The candidate's outputs beside the rows they answer, in the rows' order."""
    query = (
        select(EvaluationOutput, DatasetRow)
        .join(DatasetRow, DatasetRow.id == EvaluationOutput.row_id)
        .where(EvaluationOutput.evaluation_id == evaluation_id, EvaluationOutput.candidate == candidate)
        .order_by(DatasetRow.position)
    )
    return session.execute(query).all()


def test_row_ids(session: Session, version_id: UUID) -> set[UUID]:
    """Which rows the evidence is about. Their content stays closed."""
    query = select(DatasetRow.id).where(DatasetRow.version_id == version_id, DatasetRow.split == "test")
    return set(session.scalars(query))
