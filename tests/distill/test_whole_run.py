"""A whole run in this process: real trainer, real judge's wire, real PostgreSQL; only the model is tiny."""

from __future__ import annotations

import json
import signal
from decimal import Decimal
from pathlib import Path
from uuid import UUID

import pytest
from sqlalchemy import select

from distill import train, trainers
from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.evaluations.service import gate
from gateway.models import (
    Checkpoint,
    DatasetRow,
    DatasetVersion,
    Evaluation,
    EvaluationOutput,
    LedgerEntry,
    Rollout,
    Rubric,
    Run,
    RunEvent,
    RunStep,
    Task,
    TrainedSequence,
)
from gateway.runs import lease
from gateway.students.service import release
from tests import seeded
from tests.distill.conftest import CONFIG, Judge, row


def take(run_id: UUID) -> int:
    with session_scope() as session:
        taken = lease.take(session, run_id, owner=trainers.my_name(), seconds=30)
    assert taken is not None
    assert taken.lease is not None
    return taken.lease.epoch


def trained(run_id: UUID, monkeypatch: pytest.MonkeyPatch) -> int:
    """Runs the trainer's main here, and puts this process back where it was."""
    monkeypatch.chdir(Path.cwd())
    before = signal.getsignal(signal.SIGTERM)
    try:
        return train.main([str(run_id), "--epoch", str(take(run_id))])
    finally:
        signal.signal(signal.SIGTERM, before)


def test_every_phase_leaves_what_it_promises(run_id: UUID, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        run.config = run.config | {"sft_all_steps": 9}
        task = session.get_one(Task, run.task_id)
        for number in range(1000, 1200):  # calls of which the answer was cut: prompts without an answer
            seeded.call(session, task, None, f"ticket {number}", "a", system="a or b?", complete=False, trainable=False)
    assert trained(run_id, monkeypatch) == 0
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        assert (run.state, run.phase, run.error, run.attempts) == ("succeeded", "done", None, 0)
        steps = session.execute(select(RunStep.phase, RunStep.step).order_by(RunStep.created_at, RunStep.step)).all()
        numbers = {phase: [s for p, s in steps if p == phase] for phase in dict.fromkeys(p for p, _ in steps)}
        assert list(numbers) == ["freeze", "sft", "grpo", "sft_all", "evaluate"]
        assert numbers["sft"] == list(range(1, 7))
        assert numbers["grpo"] == list(range(1, 5))
        assert numbers["evaluate"] == [1, 2, 3, 4]
        _check_rollouts(session.scalars(select(Rollout)).all())
        splits = select(DatasetRow.split).where(DatasetRow.id.in_(select(Rollout.row_id))).distinct()
        assert set(session.scalars(splits)) == {"train", "practice"}, "validation and test are never practised on"
        _check_drift(session.scalars(select(RunStep).order_by(RunStep.step)).all())
        _check_sequences(session.scalars(select(TrainedSequence)).all())
        version = session.get_one(DatasetVersion, run.dataset_version_id)
        assert version.test_openings == 1
        assert session.scalars(select(Rubric)).one().criteria[0]["name"] == "label_right"
        _check_money(session.scalars(select(LedgerEntry)).all(), run, judge)
        checkpoints = {c.phase: c for c in session.scalars(select(Checkpoint))}
        assert set(checkpoints) == {"sft", "sft_all", "grpo"}
        kinds = [event.kind for event in session.scalars(select(RunEvent).order_by(RunEvent.id))]
        assert kinds[0] == "queued"
        assert kinds[-1] == "succeeded"
        assert kinds.count("evaluated") == 4
        assert len({"plateau", "no_plateau"} & set(kinds)) == 1, "the rival says whether it got to its plateau"
    for phase, checkpoint in checkpoints.items():
        kept = {folder.name for folder in (settings().runs_dir / str(run_id) / phase).iterdir()}
        assert (settings().runs_dir / checkpoint.path / "adapter_model.safetensors").is_file()
        assert len(kept) <= 2, f"{phase} keeps more than its last and best state: {kept}"


def test_the_evaluation_is_evidence_and_its_winner_can_be_released(
    run_id: UUID, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert trained(run_id, monkeypatch) == 0
    with session_scope() as session:
        evaluation = session.scalars(select(Evaluation)).one()
        assert evaluation.state == "finished"
        assert set(evaluation.candidates) == {"base", "sft", "sft_all", "grpo"}
        rows = session.scalars(select(EvaluationOutput)).all()
        entry = evaluation.candidates[evaluation.winner or ""]
        validation = {name: c["validation"]["judged"] for name, c in evaluation.candidates.items() if name != "base"}
        assert validation[evaluation.winner or ""] == max(validation.values())
        for name, candidate in evaluation.candidates.items():
            outputs = [output for output in rows if output.candidate == name]
            assert candidate["n"] == len(outputs) > 30
            assert candidate["agreement"]["value"] == pytest.approx(sum(o.matches for o in outputs) / len(outputs))
            scores = [output.score for output in outputs if output.score is not None]
            assert candidate["judged"]["win_rate"] == pytest.approx(sum(scores) / len(scores))
            assert candidate["engine"]["tokens"] > 0
        # A rival that goes no further than the warm start is the same weights: the very seconds show one measurement.
        assert evaluation.candidates["sft_all"]["engine"] == evaluation.candidates["sft"]["engine"]
        # The teacher is always right here, so a student that is right ties, and one that is wrong loses.
        for output in rows:
            assert output.score == (0.5 if output.matches else 0.0)
        folder = settings().models_dir / entry["weights"]
        assert json.loads((folder / "config.json").read_text())["model_type"] == "llama"
        assert (folder / "model.safetensors").stat().st_size > 0
        assert gate(evaluation).outcome in ("failed", "undecided", "passed")
        evaluation.bars = [{"kind": "agreement", "name": "agreement", "bar": 0.0}]
        session.flush()
        student, deployment = release(session, evaluation.project_id, evaluation.id)
        assert deployment.state == "requested"
        assert student.manifest["max_new_tokens"] == 11  # two tokens, a quarter more, and eight


def test_a_base_model_that_is_not_there_is_named(run_id: UUID, monkeypatch: pytest.MonkeyPatch) -> None:
    with session_scope() as session:
        session.get_one(Run, run_id).base_model = "absent"
    assert trained(run_id, monkeypatch) == 0
    failed = row(run_id)
    assert failed.state == "failed"
    assert str(settings().models_dir / "absent") in (failed.error or "")
    assert "make setup" in (failed.error or "")


def test_a_failing_judge_is_tried_again_and_a_cap_pauses(
    run_id: UUID, judge: Judge, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("rl.judge.scorer._PATIENCE_S", ())
    monkeypatch.setattr("gateway.providers.chat.OpenAIChat._client", _impatient_client())
    judge.broken = True
    assert trained(run_id, monkeypatch) == 1
    failed = row(run_id)
    assert (failed.state, failed.phase) == ("running", "grpo")
    assert "no usable answer" in (failed.error or "")
    assert failed.lease_expires_at is not None
    judge.broken = False
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        run.lease_expires_at = None
        run.config = run.config | {"judge_spend_cap_usd": "0.004"}
    assert trained(run_id, monkeypatch) == 0
    paused = row(run_id)
    assert paused.state == "paused"
    assert "judge_spend_cap_usd" in (paused.error or "")
    assert 0 < paused.judge_spend <= Decimal("0.004")
    with session_scope() as session:
        assert session.scalars(select(RunStep).where(RunStep.phase == "grpo")).first() is None


def _impatient_client() -> property:
    import openai

    return property(lambda self: openai.AsyncOpenAI(base_url=self.spec.base_url, api_key="k", timeout=5, max_retries=0))


def _check_rollouts(rollouts: list[Rollout]) -> None:
    for step in range(1, CONFIG["grpo_steps"] + 1):
        group = [r for r in rollouts if r.step == step and r.group == 0]
        assert sorted(r.index for r in group if r.index >= 0) == [0, 1, 2, 3]
        assert all(r.reward is not None for r in group)
    anchors = [r for r in rollouts if r.index == -1]
    assert anchors
    assert all((r.completion in ("a", "b"), r.reward, r.advantage) == (True, 1.0, None) for r in anchors)


def _check_drift(steps: list[RunStep]) -> None:
    """Each learning phase says at its end how far it went; what is forgotten is measured against the base model."""
    told = {step.phase: (step.step, step.metrics) for step in steps if "drift_weights" in step.metrics}
    last = {step.phase: step.step for step in steps}
    assert {phase: step for phase, (step, _) in told.items()} == {
        name: last[name] for name in ("sft", "grpo", "sft_all")
    }
    sft, grpo = told["sft"][1], told["grpo"][1]
    assert sft["drift_kl"] == sft["forgotten_kl"] > 0
    assert sft["drift_weights"] > 0
    assert 0 < sft["drift_moved"] <= 1
    assert grpo["drift_kl"] != grpo["forgotten_kl"], "one since the warm start, one since the base model"


def _check_sequences(sequences: list[TrainedSequence]) -> None:
    """The tokens that were trained are there to look at: the answer and its end, and nothing of the prompt."""
    by_phase: dict[str, set[int]] = {}
    for sequence in sequences:
        by_phase.setdefault(sequence.phase, set()).add(sequence.step)
        trained = [text for _, text, is_trained, _, _ in sequence.tokens if is_trained]
        context = "".join(text for _, text, is_trained, _, _ in sequence.tokens if not is_trained)
        assert context.startswith("<|system|>a or b?<|end|><|user|>ticket ")
        assert context.endswith("<|assistant|>")
        assert all((logprob is not None) == is_trained for _, _, is_trained, _, logprob in sequence.tokens)
        if sequence.phase == "grpo":
            assert sequence.reward is not None
            assert sequence.advantage
        else:
            assert trained in (["a", "<|end|>"], ["b", "<|end|>"])
            assert [special for *_, special, _ in sequence.tokens[-2:]] == [False, True]
    assert by_phase["sft"] == {1, 3, 6}
    assert by_phase["sft_all"] >= {9}


def _check_money(entries: list[LedgerEntry], run: Run, judge: Judge) -> None:
    assert len(entries) == len(judge.asked) > 0
    assert {entry.kind for entry in entries} == {"judge"}
    assert {entry.amount for entry in entries} == {Decimal("0.00024")}  # 120 tokens at 2 USD a million
    assert run.judge_spend == sum(entry.amount for entry in entries)
