"""SQL of datasets, always within one project. The test split has one door: `open_test`."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Literal
from uuid import UUID

from sqlalchemy import func, select, update
from sqlalchemy.orm import Session

from gateway.models import Call, Dataset, DatasetRow, DatasetVersion, Upstream


def calls_of_task(session: Session, project_id: UUID, task_id: UUID) -> Iterator[Call]:
    """Every call of the task, oldest first."""
    query = select(Call).where(Call.project_id == project_id, Call.task_id == task_id).order_by(Call.id)
    yield from session.scalars(query.execution_options(yield_per=500))


def upstreams(session: Session, project_id: UUID) -> dict[UUID, Upstream]:
    return {u.id: u for u in session.scalars(select(Upstream).where(Upstream.project_id == project_id))}


def dataset_of_task(session: Session, project_id: UUID, task_id: UUID) -> Dataset | None:
    """The task's dataset, locked: two freezes at once must not both take the next version number."""
    query = select(Dataset).where(Dataset.project_id == project_id, Dataset.task_id == task_id)
    return session.scalars(query.order_by(Dataset.id).limit(1).with_for_update()).one_or_none()


def latest_version(session: Session, dataset_id: UUID) -> DatasetVersion | None:
    query = select(DatasetVersion).where(DatasetVersion.dataset_id == dataset_id)
    return session.scalars(query.order_by(DatasetVersion.version.desc()).limit(1)).one_or_none()


def version(session: Session, project_id: UUID, version_id: UUID) -> DatasetVersion | None:
    query = select(DatasetVersion).where(DatasetVersion.project_id == project_id, DatasetVersion.id == version_id)
    return session.scalars(query).one_or_none()


def add(session: Session, row: Dataset | DatasetVersion) -> None:
    session.add(row)
    session.flush()


def add_rows(session: Session, rows: Sequence[DatasetRow]) -> None:
    session.add_all(rows)
    session.flush()


def rows(session: Session, version_id: UUID, split: Literal["train", "validation", "practice"]) -> Sequence[DatasetRow]:
    """The rows of a split in their order. The test split is not to be had here."""
    if split not in ("train", "validation", "practice"):
        raise ValueError(f"split {split!r}: the test split opens through open_test alone")
    return _rows(session, version_id, split)


def open_test(session: Session, version_id: UUID) -> Sequence[DatasetRow]:
    """The test rows in their order, and one more opening on the version's count."""
    session.execute(
        update(DatasetVersion)
        .where(DatasetVersion.id == version_id)
        .values(test_openings=DatasetVersion.test_openings + 1)
    )
    return _rows(session, version_id, "test")


def count(session: Session, version_id: UUID, split: str) -> int:
    query = select(func.count()).where(DatasetRow.version_id == version_id, DatasetRow.split == split)
    return session.scalars(query).one()


def _rows(session: Session, version_id: UUID, split: str) -> Sequence[DatasetRow]:
    query = select(DatasetRow).where(DatasetRow.version_id == version_id, DatasetRow.split == split)
    return session.scalars(query.order_by(DatasetRow.position)).all()
