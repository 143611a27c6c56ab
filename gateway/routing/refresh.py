"""Owns keeping the snapshot fresh: looks at the database every so often, keeps the last one when it cannot."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import time
from operator import itemgetter
from typing import Any
from uuid import UUID

import msgspec
from sqlalchemy.exc import SQLAlchemyError

from gateway.capture.redaction import redactor
from gateway.core import metrics
from gateway.core.db import async_session
from gateway.core.errors import StepdownError
from gateway.core.secretbox import unseal
from gateway.providers.spec import UpstreamSpec
from gateway.routing.repository import fetch_in_force
from gateway.routing.snapshot import (
    PREFIX,
    Asked,
    KeyInForce,
    NamedUpstream,
    ProjectInForce,
    RevisionInForce,
    RouteInForce,
    Snapshot,
    StudentInForce,
)

log = logging.getLogger(__name__)
FETCH_TIMEOUT_S = 5.0


class SnapshotHolder:
    """The snapshot in force. `start` loads it and keeps it fresh; `current` is None before the first load."""

    def __init__(self, every_s: float) -> None:
        self.current: Snapshot | None = None
        self.failure: str | None = None
        """Why the last look at the database failed; None when it did not."""
        self._every_s = every_s
        self._seen = ""
        self._loaded_at = 0.0
        self._task: asyncio.Task[None] | None = None
        self._unsealed: dict[str, str] = {}

    async def start(self) -> None:
        """Tries once, then goes on in the background."""
        await self.refresh()
        self._task = asyncio.create_task(self._keep(), name="snapshot-refresh")

    async def stop(self) -> None:
        """Ends the background task."""
        if self._task is not None:
            self._task.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await self._task

    @property
    def age_s(self) -> float | None:
        """Seconds since the database last confirmed the snapshot; None before the first."""
        return time.monotonic() - self._loaded_at if self.current is not None else None

    async def refresh(self) -> bool:
        """Looks once. Returns whether the database could be asked; never raises."""
        try:
            async with asyncio.timeout(FETCH_TIMEOUT_S), async_session() as session:
                seen = await fetch_in_force(session)
            if seen != self._seen:
                self.current = self._build(msgspec.json.decode(seen))
                self._seen = seen
        except (SQLAlchemyError, StepdownError, OSError, TimeoutError) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
            if self.failure is None:
                log.warning("routes and keys stay as they were: %s", reason)
            self.failure = reason
            metrics.SNAPSHOT_FAILURES.inc()
            return False
        if self.failure is not None:
            log.info("the database answers again")
        self.failure = None
        self._loaded_at = time.monotonic()
        return True

    async def _keep(self) -> None:
        while True:
            await asyncio.sleep(self._every_s)
            await self.refresh()
            metrics.SNAPSHOT_AGE.set(self.age_s or 0)

    def _build(self, state: dict[str, list[dict[str, Any]]]) -> Snapshot:
        upstreams = {row["id"]: self._upstream(row) for row in state["upstreams"]}
        revisions, fallbacks = _revisions(state), _fallbacks(state, upstreams)
        projects: dict[UUID, ProjectInForce] = {}

        def project(row: dict[str, Any]) -> ProjectInForce:
            id = UUID(row["project_id"])
            return projects.setdefault(id, ProjectInForce(id))

        for row in state["upstreams"]:
            project(row).upstreams.append(upstreams[row["id"]])
        for row in state["tasks"]:
            here = project(row)
            here.tasks_by_slug[row["slug"]] = UUID(row["id"])
            if row["fingerprint"]:
                here.tasks_by_fingerprint[_bytes(row["fingerprint"])] = UUID(row["id"])
        for row in state["routes"]:
            here, task_id = project(row), UUID(row["task_id"]) if row["task_id"] else None
            here.routes[row["alias"], task_id] = RouteInForce(
                id=UUID(row["id"]),
                alias=row["alias"],
                task_id=task_id,
                upstreams=(Asked(upstreams[row["upstream_id"]], row["upstream_model"]), *fallbacks.get(row["id"], ())),
                revision=revisions.get(row["revision_id"]),
                capture=row["capture"],
                sample=row["sample"],
            )
            if task_id:
                here.by_task.add(row["alias"])
        keys = {}
        for row in state["keys"]:
            digest = _bytes(row["hash"])
            keys[digest[:PREFIX]] = KeyInForce(
                UUID(row["id"]),
                digest,
                row["capture"],
                project(row),
                row["max_concurrent"],
                upstream=upstreams[row["upstream_id"]] if row["upstream_id"] else None,
                sample=row["sample"],
                redactor=redactor(msgspec.json.encode(row["redact"])),
            )
        return Snapshot(keys, projects)

    def _upstream(self, row: dict[str, Any]) -> NamedUpstream:
        problem = None
        try:
            api_key = self._credential(row["credential"])
        except StepdownError as error:  # one credential that cannot be read must not stop the other routes
            api_key, problem = "", error
        spec = UpstreamSpec(
            id=UUID(row["id"]),
            project_id=UUID(row["project_id"]),
            kind=row["kind"],
            base_url=row["base_url"],
            model=row["model"] or "",
            api_key=api_key,
        )
        return NamedUpstream(row["name"], spec, problem)

    def _credential(self, sealed: str | None) -> str:
        if not sealed:
            return ""
        if sealed not in self._unsealed:
            self._unsealed[sealed] = unseal(_bytes(sealed))
        return self._unsealed[sealed]


def _bytes(hexadecimal: str) -> bytes:
    return bytes.fromhex(hexadecimal.removeprefix("\\x"))


def _fallbacks(state: dict[str, list[dict[str, Any]]], upstreams: dict[str, NamedUpstream]) -> dict[str, list[Asked]]:
    """What each route asks after its first upstream, in order."""
    found: dict[str, list[Asked]] = {}
    for row in sorted(state["fallbacks"], key=itemgetter("position")):
        found.setdefault(row["route_id"], []).append(Asked(upstreams[row["upstream_id"]], row["upstream_model"]))
    return found


def _revisions(state: dict[str, list[dict[str, Any]]]) -> dict[str, RevisionInForce]:
    by_deployment = {row["id"]: row["base_url"] for row in state["deployments"]}
    by_student = {row["student_id"]: row["base_url"] for row in state["deployments"]}
    students = {row["id"]: row for row in state["students"]}
    found = {}
    for row in state["revisions"]:
        student = students.get(row["student_id"])
        # The deployment that the revision names; where that one is gone, another of the same student.
        base_url = by_deployment.get(row["deployment_id"]) or by_student.get(row["student_id"])
        found[row["id"]] = RevisionInForce(
            id=UUID(row["id"]),
            number=row["number"],
            stage=row["stage"],
            share=row["share"],
            student=StudentInForce(UUID(student["id"]), student["name"], student["manifest"], base_url)
            if student
            else None,
        )
    return found
