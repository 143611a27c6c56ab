"""Owns the routes, keys and students in force as plain objects in memory. Must not read the database.

A snapshot is never changed: the refresh puts a new one in its place, so a request sees one state throughout.
"""

from __future__ import annotations

import hmac
from dataclasses import dataclass, field
from typing import Any
from uuid import UUID

from gateway.capture.redaction import Redactor
from gateway.core.errors import StepdownError
from gateway.core.ids import hash_key
from gateway.providers.spec import UpstreamSpec

PREFIX = 16
"""Bytes of a key's hash that it is found by; the rest is compared in constant time."""


@dataclass(frozen=True)
class StudentInForce:
    """A student that a revision names. `base_url` is its engine's, None while no deployment is ready."""

    id: UUID
    name: str
    manifest: dict[str, Any]
    base_url: str | None


@dataclass(frozen=True)
class RevisionInForce:
    """The route revision that is valid now."""

    id: UUID
    number: int
    stage: str
    share: float
    student: StudentInForce | None


@dataclass(frozen=True)
class NamedUpstream:
    """An upstream with the name that people know it by. `problem`: why it cannot be asked now."""

    name: str
    spec: UpstreamSpec
    problem: StepdownError | None = None


@dataclass(frozen=True)
class Asked:
    """An upstream as a route asks it. `model`: the name to ask for there; None: the one that the app sent."""

    upstream: NamedUpstream
    model: str | None = None


@dataclass(frozen=True)
class RouteInForce:
    """How one (alias, task) is answered. `task_id` None: every other call of the alias.

    `upstreams` are asked in turn until one answers; there is always a first.
    """

    id: UUID
    alias: str
    task_id: UUID | None
    upstreams: tuple[Asked, ...]
    revision: RevisionInForce | None
    capture: str = "full"
    sample: float = 1.0

    @property
    def upstream(self) -> NamedUpstream:
        """The one that is asked first."""
        return self.upstreams[0].upstream


@dataclass
class ProjectInForce:
    """What one project routes by."""

    id: UUID
    routes: dict[tuple[str, UUID | None], RouteInForce] = field(default_factory=dict)
    by_task: set[str] = field(default_factory=set)
    """Aliases with a route of their own for some task: only their calls need their task found."""
    tasks_by_slug: dict[str, UUID] = field(default_factory=dict)
    tasks_by_fingerprint: dict[bytes, UUID] = field(default_factory=dict)
    upstreams: list[NamedUpstream] = field(default_factory=list)
    """Every upstream of the project, with a route or without."""

    @property
    def aliases(self) -> list[str]:
        """The model names that the project's apps may ask for, without the catch-all."""
        return sorted({alias for alias, _ in self.routes if alias != "*"})


@dataclass(frozen=True)
class KeyInForce:
    """A gateway key that is not revoked; with `upstream` a pass-through token, good for that one alone."""

    id: UUID
    hash: bytes
    capture: str
    project: ProjectInForce
    max_concurrent: int | None = None
    """Calls that may be under way at once; None: any number."""
    upstream: NamedUpstream | None = None
    sample: float = 1.0
    redactor: Redactor | None = None


@dataclass(frozen=True)
class Snapshot:
    """Everything that the hot path decides by, as it was at one moment."""

    keys: dict[bytes, KeyInForce]
    projects: dict[UUID, ProjectInForce]

    def key(self, token: str) -> KeyInForce | None:
        """The key that `token` is, if it is one."""
        digest = hash_key(token)
        key = self.keys.get(digest[:PREFIX])
        return key if key is not None and hmac.compare_digest(key.hash, digest) else None

    @property
    def needs_translator(self) -> bool:
        """Whether some route leads to an upstream that litellm must translate for."""
        return any(upstream.spec.kind == "litellm" for upstream in self.upstreams)

    @property
    def upstreams(self) -> list[NamedUpstream]:
        """Every upstream that some route leads to, once."""
        routes = [route for project in self.projects.values() for route in project.routes.values()]
        return list({a.upstream.spec.id: a.upstream for route in routes for a in route.upstreams}.values())
