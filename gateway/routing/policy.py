"""Owns the decision who answers a call: a pure function of the snapshot and the request."""

from __future__ import annotations

from dataclasses import dataclass, replace
from uuid import UUID

from gateway.core.errors import StepdownError
from gateway.providers.spec import speaks
from gateway.routing.manifest import outside
from gateway.routing.request import RequestView
from gateway.routing.snapshot import Asked, NamedUpstream, ProjectInForce, RouteInForce, StudentInForce
from gateway.tasks.service import slugify

ANY = "*"
_CHAT = "chat/completions"


@dataclass(frozen=True)
class Decision:
    """Who answers. `student` None: the route's upstream, for `fallback_reason` where a student was meant to."""

    route: RouteInForce
    task_id: UUID | None
    student: StudentInForce | None = None
    fallback_reason: str | None = None


def find_task(project: ProjectInForce, request: RequestView) -> UUID | None:
    """The task of a call: by the slug that the app sent, else by fingerprint. A slug unknown yet is no task."""
    slug = request.task_slug
    if slug is not None:
        return project.tasks_by_slug.get(slugify(slug))
    if not project.tasks_by_fingerprint or request.fingerprint is None:
        return None
    return project.tasks_by_fingerprint.get(request.fingerprint)


def decide(project: ProjectInForce, alias: str, request: RequestView) -> Decision:
    """Who answers `alias` for this request: the route of (alias, task), else (alias, any), else (*, any).

    Raises StepdownError (404) naming the known aliases when there is no route.
    """
    task_id = find_task(project, request) if alias in project.by_task else None
    route = project.routes.get((alias, task_id)) if task_id else None
    route = route or _route_of_all_tasks(project, alias, _CHAT)
    if route is None:
        raise unknown_model(project, alias)
    revision = route.revision
    if revision is None or revision.student is None or revision.stage not in ("canary", "live"):
        return Decision(route, task_id)
    if not within_share(revision.share, request):
        return Decision(route, task_id)
    reason = "route_without_task" if route.task_id is None else outside(revision.student.manifest, request)
    if reason is None and revision.student.base_url is None:
        reason = "not_deployed"
    return Decision(route, task_id, None if reason else revision.student, reason)


def decide_plain(project: ProjectInForce, alias: str, endpoint: str) -> Decision:
    """Who answers a call that no student can: the route of its model, else of any; without a model, the only upstream.

    Raises StepdownError (404) naming the known aliases, or what to add where no model is named.
    """
    route = _route_of_all_tasks(project, alias, endpoint)
    if route is not None:
        return Decision(route, None)
    if alias:
        raise unknown_model(project, alias)
    by_upstream = {r.upstream.spec.id: r for r in project.routes.values() if r.task_id is None}
    if len(by_upstream) != 1:
        raise StepdownError(
            404,
            "route_missing",
            f"The request names no model, and the project has {len(by_upstream)} upstreams that it could be for.",
            hint="Add a route for the alias *: it answers what no other route does.",
        )
    (route,) = by_upstream.values()
    return Decision(route, None)


def decide_passed(
    project: ProjectInForce, upstream: NamedUpstream, request: RequestView, alias: str, endpoint: str, verified: bool
) -> Decision:
    """Who answers a call that came with its provider's own key: that provider. What the project's routes say beyond
    that, a student or further upstreams, holds only where the route begins with it and it has taken the key before."""
    try:
        chat = endpoint == _CHAT
        decision = decide(project, alias, request) if chat else decide_plain(project, alias, endpoint)
    except StepdownError:
        decision = None
    if decision is None or decision.route.upstream.spec.id != upstream.spec.id:
        route = RouteInForce(id=upstream.spec.id, alias=ANY, task_id=None, upstreams=(Asked(upstream),), revision=None)
        return Decision(route, None)
    if verified:
        return decision
    return Decision(replace(decision.route, upstreams=decision.route.upstreams[:1], revision=None), None)


def _route_of_all_tasks(project: ProjectInForce, alias: str, endpoint: str) -> RouteInForce | None:
    """The alias's own route, else the catch-all. Where its upstream does not speak the endpoint, and just one other of
    the project does, that one is meant: two upstreams of two dialects need no route for each model."""
    route = project.routes.get((alias, None)) or project.routes.get((ANY, None))
    if route is None or route.alias != ANY or speaks(route.upstream.spec.kind, endpoint):
        return route
    spoken = [upstream for upstream in project.upstreams if speaks(upstream.spec.kind, endpoint)]
    others = [upstream for upstream in spoken if upstream.spec.kind != "litellm"]  # its process runs for routes alone
    if len(others) != 1:
        return route
    return RouteInForce(id=others[0].spec.id, alias=ANY, task_id=None, upstreams=(Asked(others[0]),), revision=None)


def within_share(share: float, request: RequestView) -> bool:
    """Whether the call's conversation falls to the student. Stable: all turns of a conversation agree."""
    if share >= 1 or share <= 0:
        return share >= 1
    return int.from_bytes(request.conversation[:8], "big") < share * 2**64


def unknown_model(project: ProjectInForce, alias: str) -> StepdownError:
    """404 for a model name that no route of the project answers."""
    known = ", ".join(project.aliases) or "none yet"
    return StepdownError(
        404,
        "model_not_found",
        f"No route of this project answers the model {alias[:200]!r}.",
        hint=f"Known: {known}. Use one of them, or add a route for it in the dashboard.",
        param="model",
    )
