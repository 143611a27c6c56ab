"""Owns asking for runs: the checks before one starts, stopping and resuming it, its judge. Must not train or commit.

The caller commits, then wakes the trainer with `gateway.core.jobs.enqueue("distill.advance", run.id, queue="train")`;
a sweep finds the row if that message is lost.
"""

from __future__ import annotations

from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.settings import settings
from gateway.models import Run, Upstream
from gateway.runs import progress
from gateway.runs.repository import rows as repository
from gateway.runs.schemas import dump_bars, parse_bars, parse_config

CHANGEABLE = frozenset({"judge_spend_cap_usd", "judge_call_cap"})


def create_run(
    session: Session,
    project_id: UUID,
    task_id: UUID,
    *,
    config: dict[str, object] | None = None,
    judge_upstream_id: UUID | None = None,
    bars: list[object] | None = None,
) -> Run:
    """A queued run of the task, with its bars declared. Raises StepdownError 404, 409, 422."""
    task = repository.task(session, project_id, task_id)
    if task is None:
        raise not_found("task", task_id)
    parsed, declared = parse_config(config or {}), parse_bars(bars)
    judge = allowed_judge(session, project_id, judge_upstream_id)
    judge_model(session, judge, task_id)
    run = Run(
        project_id=project_id,
        task_id=task_id,
        judge_upstream_id=judge.id,
        config=parsed.model_dump(mode="json"),
        bars=dump_bars(declared),
        base_model=settings().base_model,
    )
    repository.add(session, run)
    if task.state == "suggested":
        task.state = "active"  # whoever has it learned has taken it up
    progress.add_event(session, run, "queued", f"Asked to learn the task {task.name!r} with {judge.name} as judge.")
    return run


def allowed_judge(session: Session, project_id: UUID, upstream_id: UUID | None) -> Upstream:
    """The upstream that judges: the one named, else the only one whose terms allow it.

    Raises StepdownError 404, 409, 422.
    """
    if upstream_id is None:
        allowed = repository.judges(session, project_id)
        if len(allowed) != 1:
            raise StepdownError(
                422,
                "judge_not_chosen",
                f"{len(allowed)} upstreams of this project allow judging, so the judge has to be named.",
                hint="Set `judge_with` to allowed on one upstream, or pass `judge_upstream_id`.",
                param="judge_upstream_id",
            )
        return allowed[0]
    upstream = repository.upstream(session, project_id, upstream_id)
    if upstream is None:
        raise not_found("upstream", upstream_id)
    if upstream.judge_with != "allowed":
        raise StepdownError(
            409,
            "judging_not_permitted",
            f"Upstream {upstream.name}: its terms' permission `judge_with` is {upstream.judge_with}.",
            hint=f"Read the terms of {upstream.name}, then set `judge_with` to allowed on it, or choose another judge.",
            param="judge_upstream_id",
        )
    return upstream


def judge_model(session: Session, upstream: Upstream, task_id: UUID) -> str:
    """The model to ask for as judge: the upstream's own, else the one that the task's calls ask it for.

    Raises StepdownError 409 where neither is known.
    """
    model = upstream.model or repository.commonest_model(session, upstream.project_id, task_id, upstream.id)
    if model is None:
        raise StepdownError(
            409,
            "judge_model_unknown",
            f"Upstream {upstream.name} names no model and has answered no call of this task: what to ask for?",
            hint=f"Set `model` on upstream {upstream.name}.",
            param="judge_upstream_id",
        )
    return model


def cancel_run(session: Session, project_id: UUID, run_id: UUID) -> Run:
    """Stops a run for good. Its trainer notices within a heartbeat and ends."""
    run = _locked(session, project_id, run_id)
    if run.state in ("succeeded", "failed", "cancelled"):
        raise _wrong_state(run, "cancelled")
    run.state, run.lease_expires_at, run.finished_at = "cancelled", None, now()
    progress.add_event(session, run, "cancelled", "Cancelled by hand.")
    return run


def resume_run(session: Session, project_id: UUID, run_id: UUID, *, config: dict[str, object] | None = None) -> Run:
    """Queues a paused, failed or cancelled run again: it goes on from its last finished step.

    `config` may change the caps, nothing else: steps done under other settings would not be this run's.
    """
    run = _locked(session, project_id, run_id)
    if run.state not in ("paused", "failed", "cancelled"):
        raise _wrong_state(run, "resumed")
    fixed = sorted(set(config or {}) - CHANGEABLE)
    if fixed:
        raise StepdownError(
            409,
            "run_config_fixed",
            f"{', '.join(fixed)} cannot change under way.",
            hint=f"Start another run; only {', '.join(sorted(CHANGEABLE))} may change.",
            param="config",
        )
    if config:
        run.config = parse_config({**run.config, **config}).model_dump(mode="json")
    run.state, run.attempts, run.error, run.lease_expires_at, run.finished_at = "queued", 0, None, None, None
    progress.add_event(session, run, "resumed", f"Resumed by hand in phase {run.phase}.")
    return run


def _locked(session: Session, project_id: UUID, run_id: UUID) -> Run:
    run = repository.get(session, project_id, run_id, lock=True)
    if run is None:
        raise not_found("run", run_id)
    return run


def _wrong_state(run: Run, wish: str) -> StepdownError:
    return StepdownError(
        409, "run_state", f"Run {run.id} is {run.state}: it cannot be {wish}.", hint="Start another run instead."
    )
