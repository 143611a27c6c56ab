"""Owns the Celery tasks: each wakes what a row asks for and returns in seconds. Must not train or wait for a model."""

from __future__ import annotations

from uuid import UUID

from distill import trainers
from distill.app import app


@app.task(name="distill.advance")  # type: ignore[untyped-decorator]  # celery has no types
def advance(run_id: str) -> None:
    """Starts the run's trainer, unless somebody holds its lease."""
    trainers.start(UUID(run_id))


@app.task(name="distill.sweep")  # type: ignore[untyped-decorator]  # celery has no types
def sweep() -> None:
    """Starts every run that nobody works on: never woken, its trainer gone, or its lease run out."""
    trainers.sweep()
