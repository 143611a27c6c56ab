"""Owns recognising new tasks in captured traffic. Must not change calls that belong to a task already."""

from __future__ import annotations

from uuid import UUID

from gateway.capture.bodies import load_request
from sqlalchemy.orm import Session

from gateway.core.db import session_scope
from gateway.models import Task
from gateway.tasks import repository, service
from gateway.tasks.fingerprint import system_text

MINIMUM = 20
"""Calls of one prompt shape before a task is suggested."""


def discover(project_id: UUID | None = None) -> list[Task]:
    """Suggests a task for each prompt shape that recurs and belongs to none; returns the new ones."""
    with session_scope() as session:
        projects = [project_id] if project_id else repository.project_ids(session)
    found: list[Task] = []
    for project in projects:
        with session_scope() as session:
            found += _suggest(session, project)
    return found


def _suggest(session: Session, project_id: UUID) -> list[Task]:
    tasks = []
    for fingerprint, call in service.unknown_shapes(session, project_id, minimum=MINIMUM):
        system = system_text(load_request(session, call) or {})
        name = service.title_of(system) or f"Prompt shape {fingerprint.hex()[:8]}"
        task = service.create_task(
            session, project_id, name=name, fingerprint=fingerprint, state="suggested", system_preview=system[:400]
        )
        tasks.append(task)
    return tasks
