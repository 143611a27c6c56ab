"""Owns the routes of upstreams: where calls go, what they cost, what may be learned from them."""

from __future__ import annotations

from uuid import UUID

from fastapi import status

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import upstreams as repository
from gateway.admin.schemas.common import Created
from gateway.admin.schemas.routing import PricesIn, PricesOut, UpstreamIn, UpstreamOut, UpstreamPatch
from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.secretbox import seal
from gateway.models import Price, Upstream

router = admin_router("routing", "/projects/{project_id}/upstreams")


@router.get("")
async def list_upstreams(project_id: ProjectId, db: Database) -> list[UpstreamOut]:
    """Upstreams with the prices in force. Credentials are never returned."""
    prices = await repository.prices_in_force(db, project_id)
    return [_out(upstream, prices.get(upstream.id)) for upstream in await repository.upstreams(db, project_id)]


@router.post("", status_code=status.HTTP_201_CREATED)
async def create_upstream(project_id: ProjectId, body: UpstreamIn, db: Database) -> Created:
    """A provider to relay to."""
    if await repository.upstream_named(db, project_id, body.name):
        raise StepdownError(
            409, "upstream_exists", f"An upstream {body.name!r} exists already.", hint="Choose another.", param="name"
        )
    if body.kind == "openai" and not body.base_url:
        raise StepdownError(
            400,
            "base_url_missing",
            "An upstream of kind openai needs its base URL.",
            hint="For instance https://api.openai.com/v1.",
            param="base_url",
        )
    fields = body.model_dump(exclude={"api_key", "prices"})
    upstream = Upstream(project_id=project_id, credential=seal(body.api_key) if body.api_key else None, **fields)
    db.add(upstream)
    await db.flush()
    if body.prices:
        db.add(_price(upstream, body.prices))
    await db.commit()
    return Created(id=upstream.id)


@router.patch("/{upstream_id}")
async def change_upstream(project_id: ProjectId, upstream_id: UUID, body: UpstreamPatch, db: Database) -> UpstreamOut:
    """Changes what is given. New prices hold from now on; earlier calls keep theirs."""
    upstream = await repository.upstream(db, project_id, upstream_id)
    if upstream is None:
        raise not_found("upstream", upstream_id)
    for name, value in body.model_dump(exclude_unset=True, exclude={"api_key", "prices"}).items():
        if value is not None or name in ("model", "terms_source"):
            setattr(upstream, name, value)
    if body.api_key:
        upstream.credential = seal(body.api_key)
    if body.prices:
        db.add(_price(upstream, body.prices))
    await db.commit()
    return _out(upstream, (await repository.prices_in_force(db, project_id)).get(upstream.id))


def _price(upstream: Upstream, prices: PricesIn) -> Price:
    cached = prices.cached_input_per_mtok
    return Price(
        project_id=upstream.project_id,
        upstream_id=upstream.id,
        input_per_mtok=prices.input_per_mtok,
        cached_input_per_mtok=prices.input_per_mtok if cached is None else cached,
        output_per_mtok=prices.output_per_mtok,
        source="entered by hand",
        effective_from=now(),
    )


def _out(upstream: Upstream, price: Price | None) -> UpstreamOut:
    derived = {"has_credential", "prices"}
    return UpstreamOut(
        **{name: getattr(upstream, name) for name in UpstreamOut.model_fields if name not in derived},
        has_credential=upstream.credential is not None,
        prices=PricesOut.model_validate(price) if price else None,
    )
