"""Owns changing a route: numbered revisions, evidence for every student, one step back. Must not commit or relay."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.errors import StepdownError, not_found
from gateway.evaluations.service import gate, get_evaluation
from gateway.models import Deployment, Route, RouteRevision
from gateway.routing import repository
from gateway.students.service import get_student, load

STAGES = ("observe", "shadow", "canary", "live")


def create_route(
    session: Session,
    project_id: UUID,
    *,
    alias: str,
    upstream_id: UUID,
    upstream_model: str | None = None,
    task_id: UUID | None = None,
    fallbacks: Sequence[tuple[UUID, str | None]] = (),
) -> tuple[Route, RouteRevision]:
    """A route in stage observe: the upstream answers everything. Raises StepdownError 404, 409, 422.

    `fallbacks`: the upstreams asked where those before give no answer, each with the model's name there.
    """
    if not repository.upstream_exists(session, project_id, upstream_id):
        raise not_found("upstream", upstream_id)
    if task_id is not None and not repository.task_exists(session, project_id, task_id):
        raise not_found("task", task_id)
    known = repository.route_of(session, project_id, alias, task_id)
    if known is not None:
        raise StepdownError(
            409,
            "route_exists",
            f"Route {known.id} takes alias {alias!r} for {'this task' if task_id else 'every other call'} already.",
            hint="Add a revision to it instead.",
            param="alias",
        )
    route = Route(
        project_id=project_id, alias=alias, task_id=task_id, upstream_id=upstream_id, upstream_model=upstream_model
    )
    repository.add_route(session, route)
    _set_fallbacks(session, route, fallbacks)
    return route, _append(session, route, stage="observe", share=0.0, reason="made")


def change_route(session: Session, project_id: UUID, route_id: UUID, **fields: Any) -> None:
    """Sets what the route lets be kept of its calls, by the fields' names in its row. Raises StepdownError 404."""
    route = _locked(session, project_id, route_id)
    for name, value in fields.items():
        setattr(route, name, value)


def change_fallbacks(
    session: Session, project_id: UUID, route_id: UUID, fallbacks: Sequence[tuple[UUID, str | None]]
) -> None:
    """Replaces the upstreams that a route asks after its first. Raises StepdownError 404, 422."""
    _set_fallbacks(session, _locked(session, project_id, route_id), fallbacks)


def _set_fallbacks(session: Session, route: Route, fallbacks: Sequence[tuple[UUID, str | None]]) -> None:
    asked = {(route.upstream_id, route.upstream_model)}
    for upstream_id, model in fallbacks:
        if not repository.upstream_exists(session, route.project_id, upstream_id):
            raise not_found("upstream", upstream_id)
        if (upstream_id, model) in asked:
            raise StepdownError(
                422,
                "fallback_repeated",
                f"Upstream {upstream_id} is asked for the same model twice.",
                hint="Name each upstream once, or again with another model.",
                param="fallbacks",
            )
        asked.add((upstream_id, model))
    repository.set_fallbacks(session, route, fallbacks)


def add_revision(
    session: Session,
    project_id: UUID,
    route_id: UUID,
    *,
    stage: str,
    share: float,
    student_id: UUID | None = None,
    evaluation_id: UUID | None = None,
    reason: str,
) -> RouteRevision:
    """Appends the route's next revision and puts it in force.

    A student needs an evaluation of its own that passed the gate (law 7) and an engine that is ready. Raises
    StepdownError 404, 409, 422 that says which is missing.
    """
    route = _locked(session, project_id, route_id)
    _check_shape(stage, share, student_id)
    deployment_id = None
    if student_id is not None:
        deployment_id = _evidence(session, project_id, route, student_id, evaluation_id).id
    return _append(
        session,
        route,
        stage=stage,
        share=share,
        student_id=student_id,
        deployment_id=deployment_id,
        evaluation_id=evaluation_id if student_id is not None else None,
        reason=reason,
    )


def rollback(
    session: Session, project_id: UUID, route_id: UUID, *, reason: str = "rolled back by hand"
) -> RouteRevision:
    """Appends the revision that was in force before the present one again. Asks for no evidence: it must always work.

    A student that was unloaded is loaded again; until it is ready its upstream answers. Rolling back twice goes two
    steps back, not forth again. Raises StepdownError 404, 409 where there is none before.
    """
    route = _locked(session, project_id, route_id)
    previous = _before(repository.revisions(session, route.id))
    if previous is None:
        raise StepdownError(
            409, "no_earlier_revision", f"Route {route_id} has no earlier revision.", hint="Add a revision instead."
        )
    if previous.student_id is not None:
        load(session, project_id, previous.student_id)
    return _append(
        session,
        route,
        stage=previous.stage,
        share=previous.share,
        student_id=previous.student_id,
        deployment_id=previous.deployment_id,
        evaluation_id=previous.evaluation_id,
        reason=f"back to revision {previous.number}: {reason}",
        restores=previous.number,
    )


def _before(history: Sequence[RouteRevision]) -> RouteRevision | None:
    """The revision to go back to. The history is a stack: a rollback takes off what came after the one it restored."""
    stack: list[RouteRevision] = []
    for revision in history:
        if revision.restores is None:
            stack.append(revision)
        else:
            stack = [earlier for earlier in stack if earlier.number <= revision.restores]
    return stack[-2] if len(stack) > 1 else None


def _append(session: Session, route: Route, **values: object) -> RouteRevision:
    number = 1 + max((revision.number for revision in repository.revisions(session, route.id)), default=0)
    revision = RouteRevision(project_id=route.project_id, route_id=route.id, number=number, **values)
    repository.add_revision(session, revision)
    route.revision_id = revision.id
    session.flush()
    return revision


def _check_shape(stage: str, share: float, student_id: UUID | None) -> None:
    wrong = None
    if stage not in STAGES:
        wrong = f"There is no stage {stage!r}."
    elif not 0 <= share <= 1:
        wrong = f"The share is {share}, it must lie between 0 and 1."
    elif stage == "observe" and (student_id is not None or share > 0):
        wrong = "In stage observe no student answers."
    elif stage == "shadow" and share > 0:
        wrong = "In stage shadow the student answers nobody, so its share is 0."
    elif stage != "observe" and student_id is None:
        wrong = f"Stage {stage} needs a student."
    if wrong:
        raise StepdownError(
            422, "revision_invalid", wrong, hint="observe: no student, share 0. shadow: share 0. canary, live: up to 1."
        )


def _evidence(
    session: Session, project_id: UUID, route: Route, student_id: UUID, evaluation_id: UUID | None
) -> Deployment:
    """The student's ready deployment, once its evidence has been checked."""
    student = get_student(session, project_id, student_id)
    if evaluation_id is None or evaluation_id != student.evaluation_id:
        raise StepdownError(
            409,
            "evidence_missing",
            f"Student {student.name} needs the evaluation that it was released on, {student.evaluation_id}.",
            hint="Pass that `evaluation_id`: no student serves without evidence.",
            param="evaluation_id",
        )
    if route.task_id != student.task_id:
        raise StepdownError(
            409,
            "task_mismatch",
            f"Student {student.name} learned task {student.task_id}, this route takes {route.task_id or 'the rest'}.",
            hint="Make a route for the student's task and the alias, then add the revision there.",
            param="student_id",
        )
    evaluation = get_evaluation(session, project_id, evaluation_id)
    verdict = gate(evaluation, student.manifest["candidate"])
    if not verdict.passed:
        raise StepdownError(
            409, "gate_not_passed", f"Student {student.name} has not passed: {' '.join(verdict.reasons)}", hint=None
        )
    deployment = repository.ready_deployment(session, student.id)
    if deployment is None:
        raise StepdownError(
            409,
            "deployment_not_ready",
            f"Student {student.name} has no engine that is ready.",
            hint="Wait until its deployment is ready; load the student where it was unloaded or has failed.",
        )
    return deployment


def _locked(session: Session, project_id: UUID, route_id: UUID) -> Route:
    route = repository.lock_route(session, project_id, route_id)
    if route is None:
        raise not_found("route", route_id)
    return route
