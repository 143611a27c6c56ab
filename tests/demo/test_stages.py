"""Waiting, scoring and taking over, against an API that answers as the contract says."""

import io
from typing import Any

import pytest
from rich.console import Console

from demo import app, follow, grammar, stages
from demo.api import ApiError
from demo.settings import BARS, SCORER
from demo.system import DemoError

TICKETS = grammar.generate(6, 1)
PROJECT = stages.Project("demo", "up-1", app.Endpoint("http://127.0.0.1:1/v1", "sd-x", "frontier-large"))


class FakeApi:
    """Keeps what it is told; refuses a release while fewer than `bar` of the winner's answers are right."""

    url = "http://127.0.0.1:1"

    def __init__(self, outputs: dict[str, list[str]], bar: int = 4) -> None:
        self.answers = outputs
        self.bar = bar
        self.posted: dict[str, dict[str, bool]] = {}
        self.revisions: list[dict[str, Any]] = []
        self.deployment_states = ["requested", "starting", "ready"]

    def outputs(self, _evaluation: str, candidate: str) -> list[dict[str, Any]]:
        return [
            {"row": t.id, "input": grammar.messages(t.text), "output": text, "reference": grammar.answer(t.truth)}
            for t, text in zip(TICKETS, self.answers[candidate], strict=True)
        ]

    def post_external(self, _evaluation: str, name: str, candidate: str, results: dict[str, bool]) -> dict[str, Any]:
        assert name == SCORER
        self.posted[candidate] = results
        return {}

    def create_route(self, alias: str, _upstream: str, _model: str, task_id: str | None = None) -> dict[str, Any]:
        self.revisions.append({"number": 1, "stage": "observe", "alias": alias, "task": task_id})
        return {"id": "route-1", "revision": 1}

    def route(self, _route: str) -> dict[str, Any]:
        return {"revision": self.revisions[-1]}

    def release(self, _evaluation: str) -> dict[str, Any]:
        if sum(self.posted["grpo"].values()) < self.bar:
            raise ApiError(409, "gate_not_passed", "the lower end is below the bar")
        return {"student_id": "s", "deployment_id": "d"}

    def deployment(self, _deployment: str) -> dict[str, Any]:
        state = self.deployment_states.pop(0) if len(self.deployment_states) > 1 else self.deployment_states[0]
        return {"state": state, "error": "no memory" if state == "failed" else None}

    def revise(self, _route: str, revision: dict[str, Any]) -> int:
        self.revisions.append({"number": len(self.revisions) + 1, **revision})
        return len(self.revisions)


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "POLL_S", 0.001)
    monkeypatch.setattr(follow, "POLL_S", 0.001)


def evidence(api: Any) -> stages.Scored:
    evaluation = {"id": "e", "candidates": {name: {} for name in api.answers}}
    return stages.score_outputs(api, evaluation, {t.text: t.truth for t in TICKETS})


def outputs(right: int) -> dict[str, list[str]]:
    good = [grammar.answer(t.truth) for t in TICKETS]
    return {"base": ["?"] * 6, "grpo": good[:right] + ["{}"] * (6 - right)}


def test_scores_are_posted_row_by_row() -> None:
    api = FakeApi(outputs(5))
    scored = evidence(api)
    assert scored.hits == {"base": [False] * 6, "grpo": [True] * 5 + [False], "teacher": [True] * 6}
    assert scored.truths == [t.truth for t in TICKETS]
    assert api.posted["grpo"] == {t.id: t is not TICKETS[5] for t in TICKETS}
    assert set(api.posted) == {"base", "grpo", "teacher"}


def test_students_of_earlier_demos_make_room() -> None:
    class Earlier:
        """Three projects, each with a route that is live and a student; only in demos' own is anything changed."""

        project = ""

        def __init__(self) -> None:
            self.done: list[tuple[str, str]] = []

        def projects(self) -> list[dict[str, Any]]:
            return [{"id": name, "name": name} for name in ("default", "demo one", "demo two")]

        def students(self) -> list[dict[str, Any]]:
            wanted = self.project != "demo two"
            return [{"id": "s", "deployment": {"wanted": wanted}}, {"id": "t", "deployment": None}]

        def routes(self) -> list[dict[str, Any]]:
            return [{"id": "r", "revision": {"stage": "live"}}, {"id": "q", "revision": {"stage": "observe"}}]

        def revise(self, route: str, revision: dict[str, Any]) -> None:
            self.done.append((self.project, f"{route} {revision['stage']}"))

        def unload(self, student: str) -> None:
            self.done.append((self.project, student))

    api: Any = Earlier()
    assert stages.set_aside_earlier(api) == 1
    assert api.done == [("demo one", "r observe"), ("demo one", "s")]


def test_takeover() -> None:
    api: Any = FakeApi(outputs(5))
    evidence(api)
    takeover = stages.take_over(api, PROJECT, {"id": "task-1"}, {"id": "e"}, lambda _: None)
    assert takeover.refusal is None
    assert (takeover.before["stage"], takeover.after["stage"], takeover.after["number"]) == ("observe", "live", 2)
    assert takeover.after["evaluation_id"] == "e"
    assert takeover.before["task"] == "task-1"


def test_below_the_bar_nothing_changes() -> None:
    api: Any = FakeApi(outputs(2))
    evidence(api)
    takeover = stages.take_over(api, PROJECT, {"id": "task-1"}, {"id": "e"}, lambda _: None)
    assert takeover.refusal == "the lower end is below the bar"
    assert takeover.after == takeover.before
    assert [revision["stage"] for revision in api.revisions] == ["observe"]


def test_a_student_that_cannot_be_loaded_is_told() -> None:
    api: Any = FakeApi(outputs(6))
    api.deployment_states = ["starting", "failed"]
    evidence(api)
    with pytest.raises(DemoError, match="no memory"):
        stages.take_over(api, PROJECT, {"id": "task-1"}, {"id": "e"}, lambda _: None)
    assert len(api.revisions) == 1


class Runs:
    """A run that goes through the given states, one a look."""

    def __init__(self, *looks: dict[str, Any]) -> None:
        self.looks = list(looks)

    def run(self, _run: str) -> dict[str, Any]:
        return self.looks.pop(0) if len(self.looks) > 1 else self.looks[0]

    def events(self, _run: str) -> list[dict[str, Any]]:
        return [{"kind": "alarm", "message": "the reward jumped"}]


def look(state: str, phase: str, step: int = 0, **metrics: float) -> dict[str, Any]:
    names = ("freeze", "sft", "grpo")
    place = names.index(phase)
    phases = [
        {"name": n, "state": "done" if i < place else state if i == place else "pending", "step": step, "planned": 4}
        for i, n in enumerate(names)
    ]
    return {"id": "r", "state": state, "phase": phase, "phases": phases, "metrics": metrics, "error": None}


def test_follow_times_each_phase_and_shows_its_figures() -> None:
    text = io.StringIO()
    watch = follow.Watch(Console(file=text, width=120))
    runs: Any = Runs(
        look("queued", "freeze"),
        look("running", "sft", 2, loss=1.25),
        look("running", "grpo", 3, reward=0.5, loss=0.1, groups_kept=9),
        look("succeeded", "grpo", 4),
    )
    assert watch.follow(runs, "r")["state"] == "succeeded"
    assert list(watch.seconds) == ["freeze", "sft", "grpo"]
    assert all(seconds > 0 for seconds in watch.seconds.values())
    assert "loss 1.25" in text.getvalue()
    assert "reward 0.5  loss 0.1  kept 9" in text.getvalue()


@pytest.mark.parametrize("state", ["failed", "paused", "cancelled"])
def test_a_run_that_does_not_succeed_tells_its_story(state: str) -> None:
    runs: Any = Runs(look("running", "sft", 1), look(state, "sft", 1))
    with pytest.raises(DemoError, match=rf"(?s)run is {state} in phase sft.*the reward jumped"):
        follow.Watch(Console(file=io.StringIO())).follow(runs, "r")


def test_the_bars_are_declared_with_the_run() -> None:
    sent: list[Any] = []

    class Declares:
        def start_run(self, *arguments: Any) -> str:
            sent.extend(arguments)
            return "r"

    api: Any = Declares()
    assert stages.start_run(api, PROJECT, {"id": "t"}, {"grpo_steps": 3}) == "r"
    assert sent == ["t", {"grpo_steps": 3}, "up-1", BARS]


def test_no_task_in_time_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(stages, "TASK_S", 0.05)

    class Few:
        def tasks(self) -> list[dict[str, Any]]:
            return [{"id": "t", "calls": 7, "trainable_calls": 7}]

    api: Any = Few()
    assert stages.wait_for_task(api, 7, lambda _: None)["id"] == "t"
    with pytest.raises(DemoError, match="No task with 8 calls"):
        stages.wait_for_task(api, 8, lambda _: None)
