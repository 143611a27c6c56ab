"""`kill -9` of the trainer at twenty random moments: the run ends with the weights of one that nobody disturbed."""

from __future__ import annotations

import json
import os
import random
import signal
import subprocess
import sys
import threading
from collections.abc import Iterator
from queue import Empty, Queue
from uuid import UUID

import psutil
import pytest
import torch
from safetensors.torch import load_file
from sqlalchemy import func, select

from distill import trainers
from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.models import Checkpoint, Run, RunStep, Task
from gateway.rubrics.service import add_version
from gateway.runs import lease
from tests import seeded
from tests.distill.conftest import Judge, row

KILLS = 20
LONGER = {"warm_start_steps": 8, "grpo_steps": 20, "sft_all_steps": 25, "sft_validate_every": 5, "sft_patience": 9}
# The tiny model finds no label: a reward that differs from answer to answer moves the weights all the same.
RUBRIC = {"criteria": [{"name": "early_letters", "question": "How many letters come before a?"}]}


class Zygote:
    """Trainers forked from a process that has everything loaded."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "-m", "tests.distill.zygote"], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
            env=os.environ | {"STEPDOWN_HOME": str(settings().root), "HF_HUB_OFFLINE": "1", **trainers.THREADS},
        )  # fmt: skip
        self._said: Queue[str] = Queue()
        threading.Thread(target=self._listen, daemon=True).start()
        assert self._said.get(timeout=90) == "ready"

    def _listen(self) -> None:
        assert self._process.stdout
        for line in self._process.stdout:
            self._said.put(line.strip())

    def start(self, run_id: UUID) -> int:
        """A trainer with a lease of its own, the one before being dead; its pid."""
        with session_scope() as session:
            dead = session.get_one(Run, run_id).lease_owner
            taken = lease.take(session, run_id, owner="nobody yet", seconds=600, dead_owner=dead)
            assert taken is not None
            assert taken.lease is not None, "given up"
        trainers.clear(run_id)
        assert self._process.stdin
        self._process.stdin.write(f"{run_id} {taken.lease.epoch}\n")
        self._process.stdin.flush()
        return int(self._said.get(timeout=20))

    def ended(self, within_s: float) -> str | None:
        """What became of the trainer: `ended CODE`; None while it runs on."""
        try:
            return self._said.get(timeout=within_s)
        except Empty:
            return None

    def close(self) -> None:
        for child in psutil.Process(self._process.pid).children():
            child.kill()
        self._process.kill()
        self._process.wait()


@pytest.fixture
def zygote(run_id: UUID) -> Iterator[Zygote]:
    made = Zygote()
    yield made
    made.close()


def finished(run_id: UUID) -> int:
    with session_scope() as session:
        return session.scalars(select(func.count()).select_from(RunStep).where(RunStep.run_id == run_id)).one()


@pytest.mark.timeout(280)
def test_twenty_kills_change_no_weight(run_id: UUID, judge: Judge, zygote: Zygote) -> None:
    judge.grade = lambda output, _: sum(letter < "a" for letter in output) / max(len(output), 1)
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        add_version(session, run.project_id, run.task_id, RUBRIC)
        run.config = run.config | LONGER
        calm = seeded.run(
            session, session.get_one(Task, run.task_id), judge_upstream_id=run.judge_upstream_id, config=run.config
        ).id
    zygote.start(calm)
    assert zygote.ended(150) == "ended 0"

    draw = random.Random(5)
    kills, early = 0, False
    while kills < KILLS:
        before, pid = finished(run_id), zygote.start(run_id)
        # Some before their first step; not twice running, because a run without a step in three attempts is given up.
        early = not early and draw.random() < 0.5
        while not early and finished(run_id) == before:
            assert zygote.ended(0.01) is None, row(run_id).error
        ended = zygote.ended(draw.uniform(0, 0.35))
        if ended is not None:
            break
        os.kill(pid, signal.SIGKILL)
        assert zygote.ended(20) == "ended -9"
        kills += 1
    assert kills == KILLS, f"the run was over after {kills} kills"
    zygote.start(run_id)
    assert zygote.ended(150) == "ended 0"

    assert (row(run_id).state, row(calm).state) == ("succeeded", "succeeded")
    for phase in ("sft", "grpo", "sft_all"):
        disturbed, undisturbed = states(run_id, phase), states(calm, phase)
        assert disturbed.keys() == undisturbed.keys()
        for name, tensor in undisturbed.items():
            torch.testing.assert_close(disturbed[name], tensor, atol=0, rtol=0)
    assert chosen(run_id) == chosen(calm)


def states(run_id: UUID, phase: str) -> dict[str, torch.Tensor]:
    """Adapter and optimizer after the phase's last step."""
    folder = max((settings().runs_dir / str(run_id) / phase).glob("step-*"))
    assert json.loads((folder / "trainer.json").read_text())["steps"] > 0
    return load_file(folder / "adapter_model.safetensors") | load_file(folder / "optimizer.safetensors")


def chosen(run_id: UUID) -> set[tuple[str, int]]:
    """The checkpoints that validation chose."""
    with session_scope() as session:
        found = session.execute(select(Checkpoint.phase, Checkpoint.step).where(Checkpoint.run_id == run_id))
        return {(phase, step) for phase, step in found}
