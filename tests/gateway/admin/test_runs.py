"""Runs: progress phase by phase, curves, rollouts, starting and stopping, and evidence with the gate's word."""

from __future__ import annotations

import random
from typing import Any

import httpx
import pytest
from sqlalchemy import select
from sqlalchemy.orm import Session

from gateway.admin.repository.runs import PhaseProgress
from gateway.admin.timeline import timeline
from gateway.core.db import session_scope
from gateway.models import Run
from gateway.runs.schemas import RunConfig
from tests.e2e.world import World, build


def a_run(**fields: Any) -> Run:
    config = RunConfig(warm_start_steps=10, grpo_steps=5, sft_all_steps=100)
    return Run(**({"state": "running", "phase": "grpo", "config": config.model_dump(mode="json")} | fields))


def states(run: Run, progress: dict[str, PhaseProgress]) -> dict[str, tuple[str, int, int]]:
    return {phase.name: (phase.state, phase.step, phase.planned) for phase in timeline(run, progress).phases}


def test_phases_before_are_done_and_those_after_wait() -> None:
    progress = {"sft": PhaseProgress(10, 20.0, 4000), "grpo": PhaseProgress(2, 30.0, 900)}
    assert states(a_run(), progress) == {
        "freeze": ("done", 1, 1),
        "sft": ("done", 10, 10),
        "grpo": ("running", 2, 5),
        "sft_all": ("pending", 0, 100),
        "evaluate": ("pending", 0, 4),
    }


def test_a_phase_that_stopped_at_its_plateau_counts_as_whole() -> None:
    progress = {"sft": PhaseProgress(10, 1, 1), "grpo": PhaseProgress(5, 1, 1), "sft_all": PhaseProgress(40, 1, 1)}
    line = timeline(a_run(state="succeeded", phase="done"), progress)
    assert line.steps_done == line.steps_planned == 1 + 10 + 5 + 40 + 4


def test_a_phase_without_steps_is_skipped() -> None:
    run = a_run(config=RunConfig(warm_start_steps=0).model_dump(mode="json"))
    assert states(run, {})["sft"] == ("skipped", 0, 0)


@pytest.mark.parametrize("state", ["failed", "cancelled", "paused"])
def test_a_stopped_run_says_where(state: str) -> None:
    found = states(a_run(state=state), {"sft": PhaseProgress(10, 1, 1)})
    assert found["grpo"][0] == state
    assert found["sft_all"][0] == ("pending" if state == "paused" else "cancelled")


@pytest.fixture
def world(session: Session) -> World:
    made = build(session, calls=12)
    session.commit()
    return made


def path_of(world: World, run: object) -> str:
    return f"/api/projects/{world.project.id}/runs/{run}"


async def test_a_run_with_its_curves(api: httpx.AsyncClient, world: World) -> None:
    run = (await api.get(path_of(world, world.finished_run))).json()
    assert (run["state"], run["steps_done"], run["steps_planned"]) == ("succeeded", 235, 235)
    assert {phase["name"]: phase["tokens"] for phase in run["phases"]}["sft"] == 40 * 448
    assert [(drift["phase"], drift["step"], drift["moved"]) for drift in run["drift"]] == [
        ("sft", 40, 0.83), ("grpo", 30, 0.22), ("sft_all", 160, 0.91),
    ]  # fmt: skip
    assert set(run["drift"][1]) == {"phase", "step", "weights", "moved", "kl", "forgotten_kl", "forgotten"}
    steps = (await api.get(path_of(world, world.finished_run) + "/steps", params={"phase": "grpo", "after": 27})).json()
    assert [step["step"] for step in steps] == [28, 29, 30]
    listed = (await api.get(f"/api/projects/{world.project.id}/runs")).json()
    assert [row["state"] for row in listed] == ["running", "succeeded"]


async def test_the_figures_shown_are_those_of_the_phase_under_way(api: httpx.AsyncClient, world: World) -> None:
    run = (await api.get(path_of(world, world.running_run))).json()
    assert (run["phase"], run["metrics"]["groups"]) == ("grpo", 16)
    with session_scope() as session:
        session.get_one(Run, world.running_run).phase = "sft_all"
    assert (await api.get(path_of(world, world.running_run))).json()["metrics"] == {}, "it has no step yet"


async def test_rollouts_of_the_latest_step_with_the_anchor_marked(api: httpx.AsyncClient, world: World) -> None:
    found = (await api.get(path_of(world, world.finished_run) + "/rollouts")).json()
    assert (found["step"], found["steps"], len(found["groups"])) == (30, [26, 27, 28, 29, 30], 16)
    group = found["groups"][0]
    assert [rollout["anchor"] for rollout in group["rollouts"]] == [True] + [False] * 8
    assert group["prompt"][1]["role"] == "user"
    earlier = (await api.get(path_of(world, world.finished_run) + "/rollouts", params={"step": 27})).json()
    assert earlier["step"] == 27


async def test_the_tokens_of_the_latest_step_or_the_one_asked_for(api: httpx.AsyncClient, world: World) -> None:
    path = path_of(world, world.finished_run) + "/tokens"
    found = (await api.get(path)).json()
    assert (found["phase"], found["step"]) == ("grpo", 30)
    assert found["phases"] == [{"phase": "sft", "steps": [1, 40]}, {"phase": "grpo", "steps": [1, 30]}]
    best, worst = found["sequences"]
    assert (best["group"], best["reward"], best["advantage"], worst["advantage"]) == (3, 0.95, 0.35, -0.35)
    first, *_, last = best["tokens"]
    assert first == {"id": 0, "text": "<|im_start|>system\n", "trained": False, "special": True, "logprob": None}
    assert (last["text"], last["trained"], last["special"]) == ("<|im_end|>", True, True)
    sft = (await api.get(path, params={"phase": "sft", "step": 1})).json()
    assert (sft["step"], len(sft["sequences"]), sft["sequences"][0]["reward"]) == (1, 2, None)
    assert (await api.get(path, params={"phase": "sft", "step": 7})).json()["sequences"] == []
    stranger = path.replace(str(world.project.id), "00000000-0000-0000-0000-000000000000")
    assert (await api.get(stranger)).status_code == 404


async def test_evidence_with_the_gates_word(api: httpx.AsyncClient, world: World) -> None:
    found = (await api.get(path_of(world, world.finished_run) + "/evaluation")).json()
    assert (found["passed"], found["winner"], found["gate"]["outcome"]) == (True, "grpo", "passed")
    assert {bar["name"]: bar["outcome"] for bar in found["gate"]["bars"]} == {"judged": "passed", "truth": "passed"}
    path = f"/api/projects/{world.project.id}/evaluations/{found['id']}/outputs"
    outputs = (await api.get(path, params={"candidate": "grpo"})).json()
    assert len(outputs) == found["candidates"]["grpo"]["n"] == 120
    assert sum(output["matches"] for output in outputs) == round(
        found["candidates"]["grpo"]["agreement"]["value"] * 120
    )
    assert len((await api.get(path, params={"candidate": "grpo", "limit": 50, "offset": 100})).json()) == 20
    missing = await api.get(path_of(world, world.running_run) + "/evaluation")
    assert (missing.status_code, missing.json()["error"]["code"]) == (404, "evaluation_not_found")


async def test_your_own_scorer_moves_the_gate(api: httpx.AsyncClient, world: World) -> None:
    found = (await api.get(path_of(world, world.finished_run) + "/evaluation")).json()
    path = f"/api/projects/{world.project.id}/evaluations/{found['id']}"
    rows = {output["row"]: True for output in (await api.get(f"{path}/outputs", params={"candidate": "sft"})).json()}
    posted = await api.post(f"{path}/external", json={"name": "truth", "candidate": "sft", "results": rows})
    assert posted.status_code == 200
    assert {bar["name"]: bar["outcome"] for bar in posted.json()["bars"]}["truth"] == "passed"
    part = await api.post(
        f"{path}/external", json={"name": "t2", "candidate": "sft", "results": dict([*rows.items()][:5])}
    )
    assert part.status_code == 422


async def test_starting_and_stopping(api: httpx.AsyncClient, world: World) -> None:
    start = f"/api/projects/{world.project.id}/tasks/{world.task.id}/runs"
    body = {"config": {"grpo_steps": 7}, "judge_upstream_id": str(world.upstream.id), "bars": None}
    made = await api.post(start, json=body)
    assert made.status_code == 201, made.text
    with session_scope() as session:
        run = session.scalars(select(Run).where(Run.id == made.json()["id"])).one()
        assert (run.state, run.config["grpo_steps"], run.bars[0]["kind"]) == ("queued", 7, "judged")
    assert (await api.post(path_of(world, made.json()["id"]) + "/cancel")).status_code == 204
    assert (await api.get(path_of(world, made.json()["id"]))).json()["state"] == "cancelled"
    assert (await api.post(path_of(world, made.json()["id"]) + "/resume")).status_code == 204
    assert (await api.get(path_of(world, made.json()["id"]))).json()["state"] == "queued"

    unknown = await api.post(start, json={"config": {"grpo_stepz": 7}})
    assert (unknown.status_code, unknown.json()["error"]["param"]) == (400, "config.grpo_stepz")


async def test_steps_that_come_later_are_seen(api: httpx.AsyncClient, world: World) -> None:
    from gateway.core.clock import now
    from tests.e2e.world_runs import add_step

    before = (await api.get(path_of(world, world.running_run))).json()["steps_done"]
    with session_scope() as session:
        add_step(session, session.get_one(Run, world.running_run), "grpo", 13, now(), random.Random(1))
    assert (await api.get(path_of(world, world.running_run))).json()["steps_done"] == before + 1


async def test_task_page_and_renaming(api: httpx.AsyncClient, world: World) -> None:
    path = f"/api/projects/{world.project.id}/tasks/{world.task.id}"
    task = (await api.get(path)).json()
    assert task["rubric"]["version"] == 1
    assert [version["version"] for version in task["dataset_versions"]] == [2, 1]
    assert {judge["name"] for judge in task["run_defaults"]["judges"]} == {"openai", "anthropic"}
    assert task["run_defaults"]["config"]["grpo_group"] == RunConfig().grpo_group
    assert (await api.patch(path, json={"name": "Tickets", "state": "ignored"})).status_code == 204
    task = (await api.get(path)).json()
    assert (task["name"], task["state"]) == ("Tickets", "ignored")
