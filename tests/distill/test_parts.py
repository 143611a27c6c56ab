"""Small parts of the pipeline: order of examples, comparing answers, the meter, owners, states."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections import Counter
from contextlib import suppress
from uuid import UUID

import pytest
from sqlalchemy import func, select

from distill import trainers
from distill.answers import agreement, longest_answer, same
from distill.batches import batch_of
from distill.lab import Lab
from distill.outcomes import ENDING, Stopped
from distill.phases import evaluate, freeze, sft
from gateway.core import processes
from gateway.core.db import session_scope
from gateway.models import DatasetVersion, EvaluationOutput, Run, RunStep
from gateway.runs import service
from tests.distill.test_resume import context


def test_every_pass_sees_every_example_once_in_an_order_of_its_own() -> None:
    seen = [place for step in range(1, 11) for place in batch_of("7", step, 25, 10)]
    passes = [seen[start : start + 25] for start in range(0, 100, 25)]
    assert all(sorted(one) == list(range(25)) for one in passes)
    assert len({tuple(one) for one in passes}) == 4
    assert batch_of("7", 4, 25, 10) == seen[30:40]
    assert batch_of("8", 4, 25, 10) != seen[30:40]


def test_a_batch_larger_than_the_data_repeats_it_evenly() -> None:
    assert set(Counter(batch_of("7", 1, 3, 9)).values()) == {3}


@pytest.mark.parametrize(
    ("left", "right", "equal"),
    [
        ('{"a": 1, "b": [2]}', '{"b":[2],"a":1}', True),
        ('{"a": 1}', '{"a": true}', False),
        ('{"a": "x"}', '{"a": "X"}', False),
        (" refund ", "refund", True),
        ("refund", '"refund"', False),
        ('{"a": 1', '{"a": 1', True),
        ("1", "1.0", False),
    ],
)
def test_answers_are_compared_as_json_where_both_are(left: str, right: str, equal: bool) -> None:
    assert same(left, right) is equal
    assert same(right, left) is equal


def test_agreement_is_the_share_of_equal_answers() -> None:
    assert agreement(["a", "b", '{"x": 1}'], ["a", "c", '{"x":1}']) == pytest.approx(2 / 3)
    assert agreement([], []) == 0.0


def test_the_longest_answer_leaves_room_above_the_99th_percentile() -> None:
    assert longest_answer([20] * 99 + [500]) == 33
    assert longest_answer([4]) == 13


def test_an_owner_is_gone_only_when_it_is_known_to_be() -> None:
    process = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    identity = processes.identify(process.pid)
    assert identity is not None
    name = trainers.owner_name(identity)
    assert not trainers.is_gone(name)
    process.kill()
    process.wait()
    assert trainers.is_gone(name)
    mine = trainers.my_name()
    assert not trainers.is_gone(mine)
    assert trainers.is_gone(mine.replace(mine.rsplit("/", 1)[1], "1")), "another process with our pid"
    for unknown in (None, "", f"elsewhere/{os.getpid()}/x/1", "nonsense"):
        assert not trainers.is_gone(unknown)


def test_being_asked_to_end_is_not_lost_in_an_event_loop_or_a_broad_handler(run_id: UUID) -> None:
    """Where an exception from a signal is swallowed (a destructor), the next write sees the request."""

    async def interrupted() -> None:
        asyncio.get_running_loop().call_soon(_stop)
        await asyncio.sleep(5)

    with pytest.raises(Stopped):
        asyncio.run(interrupted())
    with pytest.raises(Stopped), suppress(Exception):  # as libraries have it
        raise Stopped
    ctx = context(run_id)
    ENDING.set()
    try:
        with pytest.raises(Stopped):
            ctx.event("late", "never written")
    finally:
        ENDING.clear()


def _stop() -> None:
    raise Stopped


def test_evaluation_goes_on_after_the_candidates_it_has(run_id: UUID) -> None:
    ctx = context(run_id)
    lab = Lab(ctx)
    freeze.run(ctx, lab)
    sft.run(ctx, lab, "sft")
    commit = ctx.commit

    def breaking(write):  # type: ignore[no-untyped-def]  # generic in what it returns
        result = commit(write)
        if _evaluated(run_id):  # the first candidate has just been written
            raise Stopped
        return result

    ctx.commit = breaking  # type: ignore[method-assign]  # broken on purpose
    with pytest.raises(Stopped):
        evaluate.run(ctx, lab)
    lab.close()
    done = _evaluated(run_id)
    assert done == ["base"]
    later = context(run_id)
    lab = Lab(later)
    evaluate.run(later, lab)
    lab.close()
    assert _evaluated(run_id) == ["base", "sft"]
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        version = session.get_one(DatasetVersion, run.dataset_version_id)
        counts = session.execute(select(EvaluationOutput.candidate, func.count()).group_by("candidate")).all()
        steps = session.scalars(select(RunStep.step).where(RunStep.phase == "evaluate")).all()
    assert {count for _, count in counts} == {version.counts["test"]}
    assert version.test_openings == 2, "each opening is counted, a second one after a restart too"
    assert sorted(steps) == [1, 2]


def _evaluated(run_id: UUID) -> list[str]:
    with session_scope() as session:
        return sorted(set(session.scalars(select(EvaluationOutput.candidate))))


def test_a_trainer_that_is_asked_to_end_hands_its_run_back(run_id: UUID) -> None:
    from tests.distill.test_kills import trainers_of, until

    assert trainers.start(run_id)
    until(lambda: _steps(run_id) >= 1, 90, "a step")
    (process,) = trainers_of(run_id)
    process.terminate()
    until(lambda: not trainers_of(run_id), 20, "the trainer ends")
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        assert (run.state, run.attempts, run.lease_expires_at) == ("queued", 0, None)
    done = _steps(run_id)
    assert trainers.sweep() == [run_id]
    until(lambda: _steps(run_id) > done, 90, "another step")
    processes.end(trainers_of(run_id), grace_s=0)


def test_a_run_cancelled_by_hand_ends_its_trainer_and_what_that_started(run_id: UUID) -> None:
    from tests.distill.test_kills import trainers_of, until

    assert trainers.start(run_id)
    assert not trainers.start(run_id), "it is held"
    until(lambda: _steps(run_id) >= 1, 90, "a step")
    assert len(trainers_of(run_id)) == 1
    with session_scope() as session:
        run = session.get_one(Run, run_id)
        service.cancel_run(session, run.project_id, run_id)
    until(lambda: not trainers_of(run_id), 20, "the trainer ends")
    assert trainers.sweep() == []
    with session_scope() as session:
        assert session.get_one(Run, run_id).state == "cancelled"


def _steps(run_id: UUID) -> int:
    with session_scope() as session:
        query = select(func.count()).where(RunStep.run_id == run_id, RunStep.phase == "sft")
        return session.scalars(query).one()
