"""Owns reading the state in force for the hot path, and an upstream's spec for teachers and judges."""

from __future__ import annotations

from datetime import datetime
from typing import Any
from typing import cast as typed
from uuid import UUID

from sqlalchemy import ColumnElement, Text, cast, func, literal_column, or_, select
from sqlalchemy.ext.asyncio import AsyncSession
from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.errors import not_found
from gateway.core.secretbox import unseal
from gateway.models import ApiKey, Deployment, Price, Route, RouteFallback, RouteRevision, Student, Task, Upstream
from gateway.providers.spec import Prices, UpstreamKind, UpstreamSpec


def _rows(name: str, query: Any) -> ColumnElement[Any]:
    # Ordered, so that equal states give equal texts.
    inner = query.order_by(*query.selected_columns[:2]).subquery(name)
    whole_rows = func.json_agg(func.row_to_json(literal_column(name)))
    return select(func.coalesce(whole_rows, literal_column("'[]'"))).select_from(inner).scalar_subquery()


def _in_force() -> Any:
    """One row, one column: everything the snapshot holds as one JSON text, so that a look is one round trip."""
    parts: dict[str, Any] = {
        "keys": select(
            ApiKey.id, ApiKey.project_id, ApiKey.hash, ApiKey.capture, ApiKey.max_concurrent, ApiKey.upstream_id,
            ApiKey.sample, ApiKey.redact,
        ).where(
            or_(ApiKey.revoked_at.is_(None), ApiKey.revoked_at > func.now())
        ),
        "upstreams": select(
            Upstream.id, Upstream.project_id, Upstream.name, Upstream.kind, Upstream.base_url, Upstream.model,
            Upstream.credential,
        ),
        "routes": select(
            Route.id, Route.project_id, Route.alias, Route.task_id, Route.upstream_id, Route.upstream_model,
            Route.revision_id, Route.capture, Route.sample,
        ),
        "fallbacks": select(
            RouteFallback.route_id, RouteFallback.position, RouteFallback.upstream_id, RouteFallback.upstream_model
        ),
        "revisions": select(
            RouteRevision.id, RouteRevision.number, RouteRevision.stage, RouteRevision.share,
            RouteRevision.student_id, RouteRevision.deployment_id,
        ).join(Route, Route.revision_id == RouteRevision.id),
        "students": select(Student.id, Student.name, Student.manifest).where(
            Student.id.in_(select(RouteRevision.student_id).join(Route, Route.revision_id == RouteRevision.id))
        ),
        "deployments": select(Deployment.id, Deployment.student_id, Deployment.base_url).where(
            Deployment.wanted, Deployment.state == "ready", Deployment.base_url.is_not(None)
        ),
        "tasks": select(Task.id, Task.project_id, Task.slug, Task.fingerprint),
    }  # fmt: skip
    arguments: list[Any] = []
    for name, query in parts.items():
        arguments += [name, _rows(name, query)]
    return select(cast(func.json_build_object(*arguments), Text))


IN_FORCE = _in_force()


async def fetch_in_force(session: AsyncSession) -> str:
    """The state in force as JSON text. Equal texts mean that nothing changed."""
    return str((await session.execute(IN_FORCE)).scalar_one())


def prices_of(session: Session, upstream: Upstream, at: datetime) -> Prices:
    """The upstream's prices in force at a moment; zero where none is known."""
    row = session.scalars(
        select(Price)
        .where(
            Price.upstream_id == upstream.id,
            Price.effective_from <= at,
            or_(Price.model.is_(None), Price.model == upstream.model),
        )
        .order_by(Price.model.is_(None), Price.effective_from.desc())
        .limit(1)
    ).first()
    return Prices() if row is None else Prices(row.input_per_mtok, row.cached_input_per_mtok, row.output_per_mtok)


def upstream_spec(session: Session, project_id: UUID, upstream_id: UUID, model: str | None = None) -> UpstreamSpec:
    """The upstream as teacher or judge, its credential in clear. Raises StepdownError (404) when there is none."""
    row = session.scalars(
        select(Upstream).where(Upstream.id == upstream_id, Upstream.project_id == project_id)
    ).one_or_none()
    if row is None:
        raise not_found("upstream", upstream_id)
    return UpstreamSpec(
        id=row.id,
        project_id=row.project_id,
        kind=typed(UpstreamKind, row.kind),
        base_url=row.base_url,
        model=model or row.model or "",
        api_key=unseal(row.credential) if row.credential else "",
        prices=prices_of(session, row, now()),
    )
