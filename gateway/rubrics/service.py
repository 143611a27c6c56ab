"""Owns rubric versions: never changed, only superseded. Must not commit."""

from __future__ import annotations

from uuid import UUID

from pydantic import ValidationError
from sqlalchemy.orm import Session

from gateway.core.errors import StepdownError, not_found
from gateway.models import Rubric
from gateway.rubrics import repository
from gateway.rubrics.schemas import RubricContent


def current(session: Session, project_id: UUID, task_id: UUID) -> Rubric | None:
    """The task's latest rubric; None where it has none yet."""
    return repository.latest(session, project_id, task_id)


def get(session: Session, project_id: UUID, rubric_id: UUID) -> Rubric:
    """The rubric. Raises StepdownError 404."""
    rubric = repository.get(session, project_id, rubric_id)
    if rubric is None:
        raise not_found("rubric", rubric_id)
    return rubric


def add_version(session: Session, project_id: UUID, task_id: UUID, content: dict[str, object]) -> Rubric:
    """The task's next rubric version. Raises StepdownError 422 that names the field."""
    try:
        parsed = RubricContent.model_validate(content)
    except ValidationError as error:
        first = error.errors()[0]
        where = ".".join(str(part) for part in first["loc"]) or "rubric"
        raise StepdownError(
            422, "rubric_invalid", f"{where}: {first['msg']}.", hint="Correct it and send again.", param=where
        ) from None
    latest = repository.latest(session, project_id, task_id)
    rubric = Rubric(
        project_id=project_id,
        task_id=task_id,
        version=latest.version + 1 if latest else 1,
        criteria=[criterion.model_dump() for criterion in parsed.criteria],
        vetoes=[veto.model_dump() for veto in parsed.vetoes],
        checks=parsed.checks,
    )
    repository.add(session, rubric)
    return rubric
