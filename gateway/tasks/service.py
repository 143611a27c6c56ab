"""Owns what makes a task: found from a recurring prompt shape or made by hand. Must not commit or touch routes."""

from __future__ import annotations

import re
import unicodedata
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.errors import StepdownError, not_found
from gateway.models import Task
from gateway.tasks import repository

STATES = ("suggested", "active", "ignored")


def create_task(
    session: Session,
    project_id: UUID,
    *,
    name: str,
    slug: str | None = None,
    fingerprint: bytes | None = None,
    state: str = "active",
    system_preview: str = "",
) -> Task:
    """A new task; its earlier calls of the same fingerprint become its own. Raises StepdownError 409, 422."""
    taken = repository.slugs(session, project_id)
    if slug is not None and slug in taken:
        raise StepdownError(
            409, "task_slug_taken", f"A task {slug!r} exists already.", hint="Choose another slug.", param="slug"
        )
    if fingerprint is not None and repository.by_fingerprint(session, project_id, fingerprint) is not None:
        raise StepdownError(
            409,
            "task_fingerprint_taken",
            f"A task with the fingerprint {fingerprint.hex()} exists already.",
            hint="Use that one: a prompt shape belongs to one task.",
            param="fingerprint",
        )
    task = Task(
        project_id=project_id,
        name=name,
        slug=slug or _free(slugify(name), taken),
        fingerprint=fingerprint,
        state=_checked(state),
        system_preview=system_preview,
    )
    repository.add(session, task)
    if fingerprint is not None:
        repository.adopt_calls(session, task)
    return task


def update_task(
    session: Session, project_id: UUID, task_id: UUID, *, name: str | None = None, state: str | None = None
) -> Task:
    """Renames a task or changes its state. Raises StepdownError 404, 422."""
    task = get_task(session, project_id, task_id)
    if name is not None:
        task.name = name
    if state is not None:
        task.state = _checked(state)
    return task


def get_task(session: Session, project_id: UUID, task_id: UUID) -> Task:
    """The task. Raises StepdownError 404."""
    task = repository.get(session, project_id, task_id)
    if task is None:
        raise not_found("task", task_id)
    return task


def slugify(text: str) -> str:
    """A short name for URLs and headers: ASCII letters and digits, joined by hyphens."""
    plain = unicodedata.normalize("NFKD", text).encode("ascii", "ignore").decode().lower()
    return re.sub(r"[^a-z0-9]+", "-", plain).strip("-")[:48].strip("-") or "task"


def title_of(system: str) -> str:
    """The first words of a system prompt, as a name until somebody gives a better one."""
    first = re.split(r"[.!?\n]", system.strip(), maxsplit=1)[0]
    words = first.removeprefix("You are ").removeprefix("you are ").split()
    return " ".join(words[:8]).strip(" ,;:").capitalize()


def _free(wanted: str, taken: set[str]) -> str:
    number, slug = 1, wanted
    while slug in taken:
        number += 1
        slug = f"{wanted}-{number}"
    return slug


def _checked(state: str) -> str:
    if state not in STATES:
        raise StepdownError(
            422, "task_state", f"A task cannot be {state!r}.", hint=f"Choose from {', '.join(STATES)}.", param="state"
        )
    return state
