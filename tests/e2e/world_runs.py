"""The runs of the seeded world: one that ended with a student, one under way. Numbers are made up."""

from __future__ import annotations

import json
import random
import re
import uuid
from datetime import datetime, timedelta
from decimal import Decimal
from typing import Any

from sqlalchemy.orm import Session

from gateway.core.clock import now
from gateway.core.ids import new_id
from gateway.evaluations.service import OutputRecord, begin, finish, post_external, record_candidate
from gateway.models import (
    Checkpoint,
    Dataset,
    DatasetRow,
    DatasetVersion,
    Deployment,
    Rollout,
    Run,
    RunEvent,
    RunStep,
    Student,
    Task,
    TrainedSequence,
    Upstream,
)
from tests import seeded

CATEGORIES = (
    "billing_duplicate",
    "app_crash",
    "delivery_delay",
    "cancellation",
    "login",
    "refund",
    "how_to",
    "presales",
)
BARS = [
    {"kind": "judged", "name": "judged", "delta": 0.05},
    {"kind": "external", "name": "truth", "bar": 0.8},
]
QUALITY = {"base": 0.0, "sft": 0.66, "sft_all": 0.79, "grpo": 0.9}


def finished_run(session: Session, task: Task, judge: Upstream, dice: random.Random) -> tuple[Student, uuid.UUID]:
    """A run that succeeded a day ago, its evidence, and the student that was released on it."""
    began = now() - timedelta(days=1, hours=2)
    run = seeded.run(
        session, task, judge, state="succeeded", phase="done", base_model="smollm2-135m-instruct", bars=BARS,
        created_at=began, started_at=began, finished_at=began + timedelta(minutes=19), judge_spend=Decimal("1.274"),
    )  # fmt: skip
    version, rows = _dataset(session, task, judge)
    run.dataset_version_id = version.id
    at = _steps(session, run, "sft", 40, began, dice)
    at = _steps(session, run, "grpo", 30, at, dice)
    _steps(session, run, "sft_all", 160, at, dice)
    session.flush()
    for phase, step, *figures in (("sft", 40, 0.0123, 0.83, 0.31), ("grpo", 30, 0.0021, 0.22, 0.03),
                                  ("sft_all", 160, 0.0241, 0.91, 0.62)):  # fmt: skip
        _drift(session, run, phase, step, *figures)
    _rollouts(session, run, rows, range(26, 31), dice)
    for phase, step in (("sft", 1), ("sft", 40), ("grpo", 1), ("grpo", 30)):
        _sequences(session, run, phase, step, rows[step])
    _events(
        session, run, began, ("queued", "phase", "dataset", "phase", "phase", "restart", "phase", "phase", "succeeded")
    )
    return _evidence(session, run, task, rows, dice), run.id


def running_run(session: Session, task: Task, judge: Upstream, dice: random.Random) -> uuid.UUID:
    """A run in the middle of GRPO."""
    began = now() - timedelta(minutes=6)
    run = seeded.run(
        session, task, judge, state="running", phase="grpo", base_model="smollm2-135m-instruct", bars=BARS,
        created_at=began, started_at=began, judge_spend=Decimal("0.412"),
    )  # fmt: skip
    version, rows = _dataset(session, task, judge, number=2)
    run.dataset_version_id = version.id
    at = _steps(session, run, "sft", 40, began, dice)
    _steps(session, run, "grpo", 12, at, dice)
    _rollouts(session, run, rows, range(9, 13), dice)
    _sequences(session, run, "grpo", 12, rows[5])
    _events(session, run, began, ("queued", "phase", "dataset", "phase", "phase"))
    return run.id


def add_step(session: Session, run: Run, phase: str, step: int, at: datetime, dice: random.Random) -> None:
    """One more finished step, as a trainer would write it."""
    metrics = _sft_metrics(step, dice) if phase != "grpo" else _grpo_metrics(step, dice)
    seconds = 2.1 if phase != "grpo" else 14.0
    session.add(
        RunStep(run_id=run.id, phase=phase, step=step, project_id=run.project_id, epoch=1, metrics=metrics,
                seconds=seconds + dice.random(), created_at=at)
    )  # fmt: skip


def _steps(session: Session, run: Run, phase: str, count: int, at: datetime, dice: random.Random) -> datetime:
    for step in range(1, count + 1):
        at += timedelta(seconds=2)
        add_step(session, run, phase, step, at, dice)
    return at


def _drift(session: Session, run: Run, phase: str, step: int, weights: float, moved: float, kl: float) -> None:
    row = session.get_one(RunStep, (run.id, phase, step))
    row.metrics = row.metrics | {
        "drift_weights": weights, "drift_moved": moved, "drift_kl": kl, "forgotten_kl": kl + 0.02,
        "forgotten": kl / 3,
    }  # fmt: skip


def _sft_metrics(step: int, dice: random.Random) -> dict[str, float]:
    metrics = {
        "loss": 2.4 * 0.93**step + 0.12 + dice.uniform(-0.03, 0.03),
        "grad_norm": 3.0 * 0.96**step + dice.uniform(0.2, 0.5),
        "lr": 0.0013 * min(1.0, step / 5),
        "trained_tokens": 448.0,
    }
    if step % 20 == 0:
        metrics["validation_agreement"] = min(0.8, 0.3 + step * 0.008)
    return metrics


def _grpo_metrics(step: int, dice: random.Random) -> dict[str, float]:
    reward = 0.62 + 0.3 * (1 - 0.93**step) + dice.uniform(-0.03, 0.03)
    anchor = 0.86 + dice.uniform(-0.02, 0.02)
    kept = dice.randrange(7, 13)
    metrics = {
        "reward_mean": reward, "margin": reward - anchor, "loss": dice.uniform(-0.02, 0.02), "groups": 16.0,
        "groups_kept": float(kept), "groups_no_variance": 16.0 - kept, "groups_no_verdict": 0.0,
        "completion_tokens": 27 + dice.uniform(-1, 1), "mismatch_kl": 7e-5 + dice.uniform(0, 5e-5),
        "entropy": 0.4 * 0.97**step, "common_share": 0.1, "truncated_share": 0.0, "judge_agreement": 1.0,
        "grad_norm": dice.uniform(0.2, 0.7), "trained_tokens": kept * 8 * 27.0, "seconds_push": 2.1,
        "seconds_sample": dice.uniform(7, 9), "seconds_judge": dice.uniform(0.6, 1.2), "seconds_train": 4.5,
    }  # fmt: skip
    if step % 10 == 0:
        metrics |= {"validation_agreement": min(0.8, 0.66 + step * 0.004), "validation_judged": 0.4 + step * 0.004}
    return metrics


def _answer(category: str, *, urgency: str = "high") -> str:
    return json.dumps(
        {"category": category, "urgency": urgency, "product": "payments", "needs_human": urgency == "high"}
    )


def _dataset(
    session: Session, task: Task, teacher: Upstream, number: int = 1
) -> tuple[DatasetVersion, list[DatasetRow]]:
    dataset = Dataset(project_id=task.project_id, task_id=task.id, name=f"{task.slug}-{number}", rules={})
    session.add(dataset)
    session.flush()
    version = DatasetVersion(
        project_id=task.project_id, dataset_id=dataset.id, version=number, content_hash=bytes(32), rules={},
        test_openings=1 if number == 1 else 0,
        counts={"train": 330, "validation": 60, "test": 120, "duplicates": 14, "untrainable": 9, "forbidden": 0},
    )  # fmt: skip
    session.add(version)
    session.flush()
    rows = [
        DatasetRow(
            id=new_id(), project_id=task.project_id, version_id=version.id, position=n, split="test",
            input_hash=n.to_bytes(32, "big"), call_id=new_id(), upstream_id=teacher.id,
            messages=[{"role": "system", "content": task.system_preview},
                      {"role": "user", "content": f"Ticket {n}: my card was charged twice, order {4000 + n}"}],
            target={"role": "assistant", "content": _answer(CATEGORIES[n % len(CATEGORIES)])},
        )
        for n in range(120)
    ]  # fmt: skip
    session.add_all(rows)
    session.flush()
    return version, rows


def _rollouts(session: Session, run: Run, rows: list[DatasetRow], steps: range, dice: random.Random) -> None:
    for step in steps:
        for group in range(16):
            row = rows[(step * 16 + group) % len(rows)]
            flat = group % 4 == 3
            right = json.loads(row.target["content"])["category"]
            rewards = [0.95 if flat else dice.choice((0.25, 0.4, 0.7, 0.95, 0.98)) for _ in range(8)]
            mean = sum(rewards) / len(rewards)
            for index, reward in [(-1, 0.9), *enumerate(rewards)]:
                good = reward > 0.5
                session.add(
                    Rollout(
                        run_id=run.id, project_id=run.project_id, step=step, group=group, index=index, row_id=row.id,
                        completion=_answer(right if good else dice.choice(CATEGORIES)), tokens=27, finish_reason="stop",
                        reward=reward, advantage=None if index < 0 or flat else reward - mean, kept=not flat,
                        criteria={"category": 1.0 if good else 0.2, "fields": reward, "invented": reward < 0.3},
                        reason="The category fits the ticket." if good else "A double charge is not what this says.",
                    )
                )  # fmt: skip


MESSAGES = {
    "queued": "Asked to learn the task with openai as judge.",
    "phase": "The next phase begins.",
    "dataset": "Dataset version 1: 330 train, 60 validation, 120 test examples; left out: 14 duplicates.",
    "restart": "Going on in phase grpo, attempt 2.",
    "succeeded": "The run has finished.",
}


def _sequences(session: Session, run: Run, phase: str, step: int, row: DatasetRow) -> None:
    """Two sequences of a step, cut at spaces."""
    answer = row.target["content"]
    texts = [(f"<|im_start|>{m['role']}\n", m["content"], "<|im_end|>") for m in row.messages]
    context = [(piece, i != 1) for parts in texts for i, part in enumerate(parts) for piece in _pieces(part)]
    context.append(("<|im_start|>assistant\n", True))
    trained = [(piece, False) for piece in _pieces(answer)] + [("<|im_end|>", True)]
    for index in range(2):
        tokens = [[n, text, False, special, None] for n, (text, special) in enumerate(context)]
        tokens += [[500 + n, text, True, special, -0.02 * n] for n, (text, special) in enumerate(trained)]
        grpo = phase == "grpo"
        session.add(
            TrainedSequence(
                run_id=run.id, project_id=run.project_id, phase=phase, step=step, index=index, row_id=row.id,
                group=3 if grpo else None, reward=(0.95, 0.25)[index] if grpo else None, left_out=0,
                advantage=(0.35, -0.35)[index] if grpo else None, tokens=tokens,
            )
        )  # fmt: skip


def _pieces(text: str) -> list[str]:
    return re.findall(r"\s?\S+|\s+", text) if "<|" not in text else [text]


def _events(session: Session, run: Run, at: datetime, kinds: tuple[str, ...]) -> None:
    for kind in kinds:
        at += timedelta(seconds=70)
        session.add(
            RunEvent(run_id=run.id, project_id=run.project_id, kind=kind, message=MESSAGES[kind], created_at=at)
        )
    session.flush()


def _evidence(session: Session, run: Run, task: Task, rows: list[DatasetRow], dice: random.Random) -> Student:
    evaluation = begin(session, run)
    checkpoint = Checkpoint(
        run_id=run.id, project_id=run.project_id, phase="grpo", step=30, path="x", validation={}, chosen=True
    )
    session.add(checkpoint)
    session.flush()
    details: dict[str, Any] = {"checkpoint_id": str(checkpoint.id), "weights": "students/x"}
    right = {}
    for candidate, quality in QUALITY.items():
        outputs = [_output(row, quality, dice) for row in rows]
        right[candidate] = {output.row_id: output.score != 0.0 for output in outputs}
        record_candidate(session, evaluation, candidate, outputs, details)
    finish(
        session, evaluation, "grpo", {"engine": {"seconds": 30.0, "tokens": 3240, "prompts": 120, "max_new_tokens": 64}}
    )
    for candidate in ("grpo", "sft_all"):
        post_external(
            session, run.project_id, evaluation.id, name="truth", candidate=candidate, results=right[candidate]
        )
    post_external(
        session, run.project_id, evaluation.id, name="truth", candidate="teacher",
        results={row.id: dice.random() < 0.86 for row in rows},
    )  # fmt: skip
    student = Student(
        project_id=run.project_id, task_id=task.id, run_id=run.id, checkpoint_id=checkpoint.id,
        evaluation_id=evaluation.id, name=f"{task.slug}-v1", path="students/x",
        manifest={"base_model": "smollm2-135m-instruct", "candidate": "grpo", "context_length": 8192},
    )  # fmt: skip
    session.add(student)
    session.flush()
    session.add(
        Deployment(project_id=run.project_id, student_id=student.id, state="ready", base_url="http://127.0.0.1:9/v1")
    )
    session.flush()
    return student


def _output(row: DatasetRow, quality: float, dice: random.Random) -> OutputRecord:
    category = json.loads(row.target["content"])["category"]
    if quality == 0:
        return OutputRecord(row.id, "I am happy to help you with your ticket!", False, 0.0, "It is no JSON.")
    if dice.random() < quality - 0.06:
        return OutputRecord(row.id, row.target["content"], True, 0.5, "The same answer.")
    if dice.random() < quality:
        return OutputRecord(row.id, _answer(category, urgency="normal"), False, 1.0, "It is calmer about the urgency.")
    return OutputRecord(row.id, _answer("other"), False, 0.0, "The category is wrong.")
