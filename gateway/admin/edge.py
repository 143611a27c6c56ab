"""Owns what every admin route shares: its error shape, its database session, its project. Must hold no SQL."""

from __future__ import annotations

from collections.abc import AsyncIterator, Callable, Coroutine
from typing import Annotated, Any
from uuid import UUID

from fastapi import APIRouter, Depends, Request, Response
from fastapi.concurrency import run_in_threadpool
from fastapi.exceptions import RequestValidationError
from fastapi.responses import JSONResponse
from fastapi.routing import APIRoute
from sqlalchemy.exc import OperationalError
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.guard import administrator
from gateway.admin.repository.access import project_exists
from gateway.admin.schemas.common import ErrorBody
from gateway.core.db import async_session
from gateway.core.errors import StepdownError, not_found
from gateway.core.jobs import enqueue


def _refusal(error: RequestValidationError) -> StepdownError:
    first = error.errors()[0]
    # ("body", "prices", "input_per_mtok") → prices.input_per_mtok
    param = ".".join(str(part) for part in first["loc"][1:]) or str(first["loc"][0])
    return StepdownError(400, "invalid_value", f"{param}: {first['msg']}.", param=param)


def _database_down() -> StepdownError:
    return StepdownError(
        503,
        "database_unavailable",
        "PostgreSQL does not answer.",
        hint="Look at `stepdown status`; calls go on being relayed and captured meanwhile.",
    )


class AdminRoute(APIRoute):
    """A route whose every failure has OpenAI's error shape and whose answers no cache keeps."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response = await handle(request)
            except StepdownError as error:
                response = JSONResponse(error.openai_body(), error.status)
            except RequestValidationError as error:
                refused = _refusal(error)
                response = JSONResponse(refused.openai_body(), refused.status)
            except OperationalError:
                down = _database_down()
                response = JSONResponse(down.openai_body(), down.status)
            response.headers.setdefault("cache-control", "no-store")
            return response

        return answer


async def _database() -> AsyncIterator[AsyncSession]:
    async with async_session() as session:
        yield session


Database = Annotated[AsyncSession, Depends(_database)]


async def _project(project_id: UUID, db: Database) -> UUID:
    if not await project_exists(db, project_id):
        raise not_found("project", project_id)
    return project_id


ProjectId = Annotated[UUID, Depends(_project)]


async def wake(run_id: UUID) -> None:
    """Tells the trainers of a queued run, beside the event loop: a broker that is down would hold calls up."""
    await run_in_threadpool(enqueue, "distill.advance", run_id, queue="train")


def admin_router(tag: str, prefix: str = "") -> APIRouter:
    """A router for the administrator alone, in this API's error shape."""
    return APIRouter(
        prefix=prefix,
        tags=[tag],
        route_class=AdminRoute,
        dependencies=[Depends(administrator)],
        responses={"4XX": {"model": ErrorBody}, "5XX": {"model": ErrorBody}},
        generate_unique_id_function=lambda route: route.name,
    )
