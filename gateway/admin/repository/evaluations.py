"""Owns queries on evaluations and the outputs behind them."""

from __future__ import annotations

import json
from typing import Any
from uuid import UUID

from sqlalchemy import select
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.schemas.evaluations import OutputOut
from gateway.models import DatasetRow, Evaluation, EvaluationOutput


async def of_run(db: AsyncSession, project_id: UUID, run_id: UUID) -> Evaluation | None:
    """The run's evaluation."""
    query = select(Evaluation).where(Evaluation.project_id == project_id, Evaluation.run_id == run_id)
    return (await db.scalars(query)).one_or_none()


async def one(db: AsyncSession, project_id: UUID, evaluation_id: UUID) -> Evaluation | None:
    """One evaluation of the project."""
    query = select(Evaluation).where(Evaluation.project_id == project_id, Evaluation.id == evaluation_id)
    return (await db.scalars(query)).one_or_none()


def _text(target: dict[str, Any]) -> str:
    content = target.get("content")
    if isinstance(content, str):
        return content
    return json.dumps(target.get("tool_calls") or content, ensure_ascii=False)


async def outputs(
    db: AsyncSession, project_id: UUID, evaluation_id: UUID, *, candidate: str | None, limit: int, offset: int
) -> list[OutputOut]:
    """Answers beside their references, in the order of the test split."""
    query = (
        select(EvaluationOutput, DatasetRow)
        .join(DatasetRow, DatasetRow.id == EvaluationOutput.row_id)
        .where(EvaluationOutput.project_id == project_id, EvaluationOutput.evaluation_id == evaluation_id)
        .order_by(DatasetRow.position, EvaluationOutput.candidate)
        .limit(limit)
        .offset(offset)
    )
    if candidate:
        query = query.where(EvaluationOutput.candidate == candidate)
    return [
        OutputOut(
            row=row.id,
            candidate=output.candidate,
            input=row.messages,
            output=output.output,
            reference=_text(row.target),
            matches=output.matches,
            score=output.score,
            reason=output.reason,
        )
        for output, row in await db.execute(query)
    ]
