"""Owns queries on captured traffic for the call list and one call's page."""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Any
from unicodedata import east_asian_width
from uuid import UUID

from sqlalchemy import BindParameter, ColumnElement, Row, Select, and_, func, literal, literal_column, or_, select, text
from sqlalchemy.ext.asyncio import AsyncSession

from gateway.admin.repository.windows import failed, succeeded
from gateway.admin.schemas.calls import CallRow
from gateway.admin.schemas.common import Named
from gateway.models import Call, LedgerEntry, RouteRevision, Student, Task, Upstream
from gateway.models.calls import CALL_WORDS


@dataclass(frozen=True)
class CallFilter:
    """What the list is narrowed to. `task` "none": calls no task was recognised in. `status`: ok, error or a code."""

    task: UUID | str | None = None
    served_by: str | None = None
    status: str | None = None
    text: str | None = None
    trajectory: str | None = None


def conditions(project_id: UUID, wanted: CallFilter) -> list[ColumnElement[bool]]:
    """What the project's calls are narrowed by."""
    found: list[ColumnElement[bool]] = [Call.project_id == project_id]
    if wanted.task == "none":
        found.append(Call.task_id.is_(None))
    elif wanted.task:
        found.append(Call.task_id == wanted.task)
    if wanted.served_by:
        found.append(Call.served_by == _plain(wanted.served_by))
    if wanted.status == "ok":
        found.append(succeeded())
    elif wanted.status == "error":
        found.append(failed())
    elif wanted.status:
        found.append(Call.status == _plain(int(wanted.status)))
    if wanted.trajectory:
        found.append(Call.trajectory == wanted.trajectory)
    if wanted.text:
        found.append(_says(wanted.text))
    return found


def _plain(value: str | int) -> BindParameter[Any]:
    """Written into the query itself, where PostgreSQL can see that a partial index covers it."""
    return literal(value, literal_execute=True)


def _says(wanted: str) -> ColumnElement[bool]:
    """Calls whose previews have words that begin with each word of `wanted`, found by their index.

    Scripts that put no space between words, and signs alone, are looked for letter by letter: a pass over the calls.
    """
    words = re.findall(r"[^\W_]+", wanted)
    if words and not any(east_asian_width(letter) in "WF" for letter in wanted):
        query = " & ".join(f"{word}:*" for word in words)
        return CALL_WORDS.bool_op("@@")(func.to_tsquery(literal_column("'simple'"), query))
    return or_(Call.preview.icontains(wanted, autoescape=True), Call.answer_preview.icontains(wanted, autoescape=True))


def _select() -> Select[*tuple[Any, ...]]:
    return (
        select(Call, Task.name.label("task"), Upstream.name.label("upstream"), Student.name.label("student"))
        .outerjoin(Task, and_(Task.id == Call.task_id, Task.project_id == Call.project_id))
        .outerjoin(Upstream, and_(Upstream.id == Call.upstream_id, Upstream.project_id == Call.project_id))
        .outerjoin(Student, and_(Student.id == Call.student_id, Student.project_id == Call.project_id))
    )


def _named(row_id: UUID | None, name: str | None) -> Named | None:
    return Named(id=row_id, name=name) if row_id and name else None


def _fields(row: Row[*tuple[Any, ...]]) -> dict[str, Any]:
    """A row of `_select` as `CallRow` wants it: names beside ids."""
    call: Call = row[0]
    fields = {name: getattr(call, name) for name in CallRow.model_fields if hasattr(call, name)}
    return fields | {
        "task": _named(call.task_id, row.task),
        "upstream": _named(call.upstream_id, row.upstream),
        "student": _named(call.student_id, row.student),
    }


async def page(
    db: AsyncSession, project_id: UUID, wanted: CallFilter, *, limit: int, before: UUID | None = None
) -> list[CallRow]:
    """Up to `limit` calls, newest first, older than `before`."""
    if wanted.text:
        # Reading a preview's words takes 15 µs, of which PostgreSQL knows nothing: it would rather walk through
        # thousands of calls than look a word up.
        await db.execute(text("SET LOCAL cpu_operator_cost = 0.05; SET LOCAL random_page_cost = 1.1"))
    query = _select().where(*conditions(project_id, wanted)).order_by(Call.id.desc()).limit(limit)
    if before:
        query = query.where(Call.id < before)
    return [CallRow(**_fields(row)) for row in await db.execute(query)]


@dataclass(frozen=True)
class OneCall:
    """A call's row, the fields its line shows, and what only its own page shows."""

    call: Call
    fields: dict[str, Any]
    route_revision: int | None
    price: dict[str, Any] | None


async def one(db: AsyncSession, project_id: UUID, call_id: UUID) -> OneCall | None:
    """One call of the project."""
    row = (await db.execute(_select().where(Call.project_id == project_id, Call.id == call_id))).one_or_none()
    if row is None:
        return None
    call: Call = row[0]
    revision = await db.scalar(
        select(RouteRevision.number).where(
            RouteRevision.project_id == project_id, RouteRevision.id == call.route_revision_id
        )
    )
    price = await db.scalar(
        select(LedgerEntry.price).where(LedgerEntry.project_id == project_id, LedgerEntry.source_id == call_id)
    )
    return OneCall(call, _fields(row), revision, price)
