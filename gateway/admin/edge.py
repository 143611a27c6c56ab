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
from sqlalchemy.exc import DataError, OperationalError
from sqlalchemy.ext.asyncio import AsyncSession
from starlette.exceptions import HTTPException

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


def _does_not_fit(error: DataError) -> StepdownError:
    return StepdownError(
        400,
        "invalid_value",
        f"A value cannot be stored: {str(error.orig).splitlines()[0]}.",
        hint="Numbers have 32 bits, and no text holds a NUL character.",
    )


def _database_down() -> StepdownError:
    return StepdownError(
        503,
        "database_unavailable",
        "PostgreSQL does not answer.",
        hint="Look at `stepdown status`; calls go on being relayed and captured meanwhile.",
    )


def _told(error: StepdownError) -> JSONResponse:
    return JSONResponse(error.openai_body(), error.status)


class AdminRoute(APIRoute):
    """A route whose every failure has OpenAI's error shape and whose answers no cache keeps."""

    def get_route_handler(self) -> Callable[[Request], Coroutine[Any, Any, Response]]:
        handle = super().get_route_handler()

        async def answer(request: Request) -> Response:
            try:
                response = await handle(request)
            except StepdownError as error:
                response = _told(error)
            except RequestValidationError as error:
                response = _told(_refusal(error))
            except HTTPException as error:  # FastAPI's own: a body that is no text at all
                response = _told(StepdownError(error.status_code, "malformed_request", f"{error.detail}."))
            except DataError as error:
                response = _told(_does_not_fit(error))
            except OperationalError:
                response = _told(_database_down())
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
