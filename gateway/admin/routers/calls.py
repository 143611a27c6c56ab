"""Owns the routes of captured traffic: the list, its live stream, one call."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from typing import Annotated, Literal
from uuid import UUID

from fastapi import Depends, Query, Request, status
from fastapi.responses import StreamingResponse

from gateway.admin.edge import Database, ProjectId, admin_router
from gateway.admin.repository import calls as repository
from gateway.admin.repository.calls import CallFilter
from gateway.admin.schemas.calls import CallDetail, CallPage, CallRow
from gateway.capture.bodies import load_request, load_response
from gateway.capture.deletion import delete_call
from gateway.capture.dialects import dialect_of
from gateway.core.db import async_session
from gateway.core.errors import not_found
from gateway.tasks.fingerprint import messages_of

router = admin_router("calls", "/projects/{project_id}/calls")

POLL_S = 1.0
_WINDOW = 100  # newest calls looked at each time; a slow call is stored late, with the id of when it began
_HEARTBEAT_POLLS = 15


def _filter(
    task: Annotated[UUID | Literal["none"] | None, Query(description="A task's id, or `none`.")] = None,
    served_by: Annotated[Literal["upstream", "student", "gateway"] | None, Query()] = None,
    status: Annotated[str | None, Query(pattern="^(ok|error|[1-5][0-9][0-9])$")] = None,
    q: Annotated[
        str | None,
        Query(max_length=200, description="Beginnings of words of how message and answer begin."),
    ] = None,
    trajectory: Annotated[str | None, Query(max_length=200, description="As `x-stepdown-trajectory` said it.")] = None,
) -> CallFilter:
    return CallFilter(task=task, served_by=served_by, status=status, text=q or None, trajectory=trajectory or None)


Filter = Annotated[CallFilter, Depends(_filter)]


@router.get("")
async def list_calls(
    project_id: ProjectId,
    db: Database,
    wanted: Filter,
    limit: Annotated[int, Query(ge=1, le=500)] = 50,
    before: Annotated[UUID | None, Query(description="The cursor that the page before gave.")] = None,
) -> CallPage:
    """Calls, newest first."""
    rows = await repository.page(db, project_id, wanted, limit=limit + 1, before=before)
    more = len(rows) > limit
    return CallPage(calls=rows[:limit], next_before=rows[limit - 1].id if more else None)


@router.get("/stream", response_class=StreamingResponse, responses={200: {"content": {"text/event-stream": {}}}})
async def stream_calls(project_id: ProjectId, request: Request, wanted: Filter) -> StreamingResponse:
    """New calls as server-sent events `call`, each a row of the list, from now on."""
    return StreamingResponse(
        _events(project_id, request, wanted),
        media_type="text/event-stream",
        headers={"x-accel-buffering": "no", "cache-control": "no-store"},
    )


async def _events(project_id: UUID, request: Request, wanted: CallFilter) -> AsyncIterator[str]:
    known = {row.id for row in await _newest(project_id, wanted)}
    yield ": connected\n\n"
    quiet = 0
    while not (request.app.state.stopping() or await request.is_disconnected()):
        await asyncio.sleep(POLL_S)
        rows = await _newest(project_id, wanted)
        fresh = [row for row in rows if row.id not in known]
        known = {row.id for row in rows} | {call for call in known if rows and call > rows[-1].id}
        for row in reversed(fresh):
            yield f"event: call\ndata: {row.model_dump_json()}\n\n"
        quiet = 0 if fresh else quiet + 1
        if quiet % _HEARTBEAT_POLLS == _HEARTBEAT_POLLS - 1:
            yield ": still here\n\n"


async def _newest(project_id: UUID, wanted: CallFilter) -> list[CallRow]:
    async with async_session() as db:
        return await repository.page(db, project_id, wanted, limit=_WINDOW)


@router.delete("/{call_id}", status_code=status.HTTP_204_NO_CONTENT)
async def delete_one_call(project_id: ProjectId, call_id: UUID, db: Database) -> None:
    """Deletes a call and what only it used. Its charge stays, and so do copies in frozen dataset versions."""
    if not await db.run_sync(lambda session: delete_call(session, project_id, call_id)):
        raise not_found("call", call_id)
    await db.commit()


@router.get("/{call_id}")
async def get_call(project_id: ProjectId, call_id: UUID, db: Database) -> CallDetail:
    """One call with its whole request and response."""
    found = await repository.one(db, project_id, call_id)
    if found is None:
        raise not_found("call", call_id)
    call = found.call
    dialect = dialect_of(call.endpoint)
    request = await db.run_sync(lambda session: load_request(session, call))
    response = await db.run_sync(lambda session: load_response(session, call))
    answer = dialect.whole(response) if response else None
    return CallDetail(
        **found.fields,
        endpoint=call.endpoint,
        tags=call.tags,
        trajectory=call.trajectory,
        route_revision=found.route_revision,
        price=found.price,
        request=request,
        response=response,
        conversation=[dict(m) for m in messages_of(dialect.as_chat(request))] if request else [],
        answers=[choice.get("message") or {} for choice in answer.choices] if answer else [],
    )
