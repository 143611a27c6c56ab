"""Owns giving calls their task: by the slug that the app sent, else by fingerprint. Must not commit."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from uuid import UUID

from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from gateway.capture import repository
from gateway.capture.ingest import Parsed
from gateway.core.errors import StepdownError
from gateway.core.jsontext import storable
from gateway.models import Task
from gateway.tasks import service

log = logging.getLogger(__name__)
RECURRING = 20
"""Calls of one prompt shape before a task is suggested for it."""
MOST_TASKS = 500
"""Of one project. An app that sends a new name with every call makes no more tasks than this."""


class Recogniser:
    """The tasks of a batch's projects, as the batch finds and makes them."""

    def __init__(self, session: Session, batch: Sequence[Parsed]) -> None:
        self._session = session
        self._batch = batch
        self._by_slug: dict[tuple[UUID, str], Task] = {}
        self._by_fingerprint: dict[tuple[UUID, bytes], Task] = {}
        self._counts: dict[UUID, int] = {}
        for task in repository.tasks(session, {p.envelope.project_id for p in batch}):
            self._know(task)

    def assign(self) -> None:
        """Before the calls are stored: sets `task_id` where the task is known, or named by the app."""
        # The named first: one of them may bring the prompt shape by which others are known.
        for parsed in self._batch:
            if slug := parsed.envelope.task_slug:
                key = parsed.envelope.project_id, service.slugify(slug)
                self._give(parsed, self._by_slug.get(key) or self._named(parsed, slug))
        for parsed in self._batch:
            if not parsed.envelope.task_slug and (fingerprint := parsed.values["fingerprint"]):
                self._give(parsed, self._by_fingerprint.get((parsed.envelope.project_id, fingerprint)))

    @staticmethod
    def _give(parsed: Parsed, task: Task | None) -> None:
        if task is not None:
            parsed.values["task_id"] = task.id

    def suggest(self) -> None:
        """After the calls are stored: makes a task of every prompt shape that came often enough."""
        shapes: dict[UUID, dict[bytes, Parsed]] = {}
        for parsed in self._batch:
            if parsed.values["fingerprint"] and parsed.values["task_id"] is None and not parsed.envelope.task_slug:
                shapes.setdefault(parsed.envelope.project_id, {})[parsed.values["fingerprint"]] = parsed
        for project_id, latest in shapes.items():
            for fingerprint, count in repository.count_unassigned(self._session, project_id, list(latest)).items():
                if count >= RECURRING:
                    parsed = latest[fingerprint]
                    self._make(project_id, name=_title(parsed), fingerprint=fingerprint, state="suggested",
                               system_preview=parsed.system[:400])  # fmt: skip

    def _named(self, parsed: Parsed, slug: str) -> Task | None:
        """A task that the app named and nobody knew. Its prompt shape becomes the task's, if that is free."""
        project_id, fingerprint = parsed.envelope.project_id, parsed.values["fingerprint"]
        free = fingerprint is not None and (project_id, fingerprint) not in self._by_fingerprint
        return self._make(project_id, name=slug[:100], slug=service.slugify(slug), state="active",
                          fingerprint=fingerprint if free else None, system_preview=parsed.system[:400])  # fmt: skip

    def _make(
        self, project_id: UUID, *, name: str, fingerprint: bytes | None, state: str, system_preview: str,
        slug: str | None = None,
    ) -> Task | None:  # fmt: skip
        if self._counts.get(project_id, 0) >= MOST_TASKS:
            log.warning("project %s has %d tasks: %r becomes none", project_id, MOST_TASKS, name)
            return None
        try:
            with self._session.begin_nested():
                task = service.create_task(
                    self._session, project_id, name=storable(name), slug=slug, fingerprint=fingerprint, state=state,
                    system_preview=storable(system_preview),
                )  # fmt: skip
        except (IntegrityError, StepdownError):  # somebody else made it this moment: the next batch knows it
            return None
        self._know(task)
        return task

    def _know(self, task: Task) -> None:
        self._by_slug[task.project_id, task.slug] = task
        if task.fingerprint is not None:
            self._by_fingerprint[task.project_id, task.fingerprint] = task
        self._counts[task.project_id] = self._counts.get(task.project_id, 0) + 1


def _title(parsed: Parsed) -> str:
    return service.title_of(parsed.system) or f"Tools {', '.join(parsed.tools[:3])}"
