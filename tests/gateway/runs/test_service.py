"""Asking for runs: what is checked before one starts, the bars, the judge, stopping and resuming."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest
from pydantic import BaseModel

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.ids import new_id
from gateway.models import Run, RunEvent, Task
from gateway.runs import lease, service
from gateway.runs.lease import Lease, LeaseLost
from gateway.runs.plan import planned_steps
from gateway.runs.schemas import PHASES, RunConfig, parse_bars, parse_config
from tests import seeded


class Scene:
    def __init__(self, **upstream: Any) -> None:
        with session_scope() as session:
            owner = seeded.project(session)
            self.project = owner.id
            self.judge = seeded.upstream(session, owner, **upstream).id
            self.task = seeded.task(session, owner).id

    def create(self, **how: Any) -> Run:
        with session_scope() as session:
            return service.create_run(session, self.project, self.task, **how)


def expect(code: str, status: int) -> Any:
    return pytest.raises(StepdownError, check=lambda error: (error.code, error.status) == (code, status))


@pytest.mark.usefixtures("database")
class TestCreating:
    def test_defaults_suffice(self) -> None:
        scene = Scene()
        run = scene.create()
        assert (run.state, run.phase, run.judge_upstream_id) == ("queued", "freeze", scene.judge)
        assert run.bars == [{"kind": "judged", "name": "judged", "delta": 0.05}]
        assert RunConfig.model_validate(run.config) == RunConfig()

    @pytest.mark.parametrize(("before", "after"), [("suggested", "active"), ("ignored", "ignored")])
    def test_a_suggested_task_is_taken_up(self, before: str, after: str) -> None:
        scene = Scene()
        with session_scope() as session:
            session.get_one(Task, scene.task).state = before
        scene.create()
        with session_scope() as session:
            assert session.get_one(Task, scene.task).state == after

    @pytest.mark.parametrize("permission", ["unknown", "forbidden"])
    def test_a_judge_needs_its_terms_permission(self, permission: str) -> None:
        scene = Scene(judge_with=permission)
        with expect("judging_not_permitted", 409) as refusal:
            scene.create(judge_upstream_id=scene.judge)
        assert f"`judge_with` is {permission}" in str(refusal.value)
        with expect("judge_not_chosen", 422):
            scene.create()

    def test_with_several_judges_one_has_to_be_named(self) -> None:
        scene = Scene()
        with session_scope() as session:
            other = seeded.upstream(session, session.get_one(seeded.Project, scene.project), "other").id
        with expect("judge_not_chosen", 422):
            scene.create()
        assert scene.create(judge_upstream_id=other).judge_upstream_id == other

    def test_the_judges_model_comes_from_the_calls_where_the_upstream_names_none(self) -> None:
        scene = Scene(model=None)
        with expect("judge_model_unknown", 409):
            scene.create()
        with session_scope() as session:
            task, teacher = session.get_one(seeded.Task, scene.task), session.get_one(seeded.Upstream, scene.judge)
            seeded.call(session, task, teacher, "x", "y", alias="frontier-7")
            assert service.judge_model(session, teacher, scene.task) == "frontier-7"
        scene.create()

    def test_strangers_see_neither_task_nor_judge(self) -> None:
        scene = Scene()
        with expect("task_not_found", 404), session_scope() as session:
            stranger = seeded.project(session, "other")
            service.create_run(session, stranger.id, scene.task)
        with expect("upstream_not_found", 404):
            scene.create(judge_upstream_id=new_id())


@pytest.mark.parametrize(
    ("config", "names"),
    [
        ({"grpo_stepz": 3}, "grpo_stepz"),
        ({"grpo_group": 1}, "grpo_group"),
        ({"split": {"train": 0.9, "validation": 0.2, "test": 0.2}}, "split"),
        ({"loss": "magic"}, "loss"),
    ],
)
def test_wrong_settings_are_named(config: dict[str, Any], names: str) -> None:
    with expect("run_config_invalid", 422) as refusal:
        parse_config(config)
    assert names in str(refusal.value)
    assert (refusal.value.param or "").startswith("config")


@pytest.mark.parametrize(
    "bars",
    [
        [],
        [{"kind": "judged", "delta": 0.7}],
        [{"kind": "external", "bar": 0.8}],
        [{"kind": "hope", "bar": 0.8}],
        [{"kind": "judged"}, {"kind": "judged"}],
    ],
)
def test_wrong_bars_are_refused(bars: list[object]) -> None:
    with expect("run_bars_invalid", 422):
        parse_bars(bars)


def test_every_setting_and_bar_says_what_it_is() -> None:
    def undescribed(model: type[BaseModel]) -> list[str]:
        return [name for name, field in model.model_fields.items() if not field.description]

    assert undescribed(RunConfig) == []


def test_every_phase_plans_its_steps() -> None:
    planned = planned_steps(RunConfig(warm_start_steps=7, grpo_steps=0))
    assert list(planned) == list(PHASES[:-1])
    assert (planned["sft"], planned["grpo"], planned["evaluate"]) == (7, 0, 4)


@pytest.mark.usefixtures("database")
class TestStopping:
    def running(self) -> tuple[Scene, Lease]:
        scene = Scene()
        run = scene.create()
        with session_scope() as session:
            taken = lease.take(session, run.id, owner="a", seconds=30)
        assert taken is not None
        assert taken.lease is not None
        return scene, taken.lease

    def act(self, action: Any, scene: Scene, run_id: UUID) -> None:
        with session_scope() as session:
            action(session, scene.project, run_id)

    def test_a_cancelled_run_is_lost_to_its_trainer_and_resumes_where_it_was(self) -> None:
        scene, hold = self.running()
        self.act(service.cancel_run, scene, hold.run_id)
        with pytest.raises(LeaseLost), session_scope() as session:
            lease.extend(session, hold, "a", 30)
        with expect("run_state", 409):
            self.act(service.cancel_run, scene, hold.run_id)
        self.act(service.resume_run, scene, hold.run_id)
        with session_scope() as session:
            taken = lease.take(session, hold.run_id, owner="b", seconds=30)
            kinds = [event.kind for event in session.query(RunEvent).order_by(RunEvent.id)]
        assert taken is not None
        assert taken.lease == Lease(hold.run_id, 2)
        assert kinds == ["queued", "cancelled", "resumed"]

    def test_resuming_forgives_failures_and_may_raise_the_caps(self) -> None:
        scene, hold = self.running()
        with session_scope() as session:
            lease.stop(session, hold, "paused", "The judge has cost 20 USD.")
        with session_scope() as session:
            service.resume_run(session, scene.project, hold.run_id, config={"judge_spend_cap_usd": "40"})
        with session_scope() as session:
            run = session.get_one(Run, hold.run_id)
        assert (run.state, run.attempts, run.error) == ("queued", 0, None)
        assert RunConfig.model_validate(run.config).judge_spend_cap_usd == 40
        with expect("run_state", 409):
            self.act(service.resume_run, scene, hold.run_id)

    def test_only_caps_change_under_way(self) -> None:
        scene, hold = self.running()
        with session_scope() as session:
            lease.stop(session, hold, "paused", "waits")
        with expect("run_config_fixed", 409), session_scope() as session:
            service.resume_run(session, scene.project, hold.run_id, config={"seed": 4})

    def test_runs_of_other_projects_are_not_there(self) -> None:
        scene, hold = self.running()
        with session_scope() as session:
            scene.project = seeded.project(session, "other").id
        for action in (service.cancel_run, service.resume_run):
            with expect("run_not_found", 404):
                self.act(action, scene, hold.run_id)
