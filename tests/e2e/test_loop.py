"""The loop on real parts: PostgreSQL, Valkey, Celery, torch and vLLM with the real base model, behind one URL.

Short: a few training steps, a bar that any student clears. That a student learns is shown by the demo and, on a toy
reward, by tests/rl; here every part has to work with every other.
"""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx
import openai
import pytest
from rich.console import Console

from demo import app, grammar, stages, system
from demo.api import Api, ApiError
from demo.settings import Upstream
from gateway.core.ports import free_port
from rl.render import Renderer
from tests.rl.shapes import check_shapes

BASE_MODEL = Path(__file__).parents[2] / ".stepdown" / "models" / "smollm2-135m-instruct"
CONFIG = {
    "split": {"train": 0.7, "validation": 0.1, "test": 0.2},
    "warm_start_steps": 20,
    "sft_batch": 8,
    "sft_all_steps": 24,
    "sft_validate_every": 12,
    "validation_rows": 8,
    "grpo_steps": 2,
    "grpo_prompts": 4,
    "grpo_group": 4,
    "grpo_validate_every": 2,
    "max_new_tokens": 32,
}
ANY_STUDENT = [{"kind": "agreement", "bar": 0.0}]
STAND_IN = Upstream("stand-in", "frontier-large", None, "secret-key", None, "a test's own stand-in")


@pytest.fixture
def stack(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[Api, str]]:
    """`stepdown up` in a home of its own, and the scripted teacher's base URL."""
    if not BASE_MODEL.is_dir():
        pytest.fail(f"{BASE_MODEL} is missing: `make setup` makes it")
    home = tmp_path / "home"
    (home / "models").mkdir(parents=True)
    (home / "models" / BASE_MODEL.name).symlink_to(BASE_MODEL)
    for name in ("DATABASE_URL", "REDIS_URL"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("STEPDOWN_HOME", str(home))
    monkeypatch.setenv("STEPDOWN_PORT", str(free_port()))
    base_url, teacher = system.start_teacher(5, 5, STAND_IN.api_key)
    try:
        api, up = system.start_stepdown(lambda _: None)
        try:
            yield api, base_url
        finally:
            api.close()
            up.stop()
    finally:
        teacher.stop()


def until(what: str, seconds: float, done: Callable[[], bool]) -> None:
    deadline = time.monotonic() + seconds
    while time.monotonic() < deadline:
        if done():
            return
        time.sleep(0.5)
    raise AssertionError(f"{what}: not within {seconds:.0f} s")


def finished(api: Api, run_id: str) -> bool:
    run = api.run(run_id)
    assert run["state"] not in ("failed", "paused", "cancelled"), (run["error"], api.events(run_id)[:3])
    return bool(run["state"] == "succeeded")


def _check_tokens(api: Api) -> None:
    """The engine that serves the student reads every shape of message as training would have shown it."""
    (student,) = api.students()
    home = Path(os.environ["STEPDOWN_HOME"])
    key = (home / "secrets" / "engine.key").read_text().strip()
    url = student["deployment"]["base_url"].removesuffix("/v1")
    with httpx.Client(base_url=url, headers={"authorization": f"Bearer {key}"}, timeout=60, trust_env=False) as engine:
        assert check_shapes(Renderer(BASE_MODEL), engine) >= 10


@pytest.mark.timeout(1500)
def test_the_loop(stack: tuple[Api, str]) -> None:
    api, base_url = stack
    project = stages.prepare(api, STAND_IN, {"input": "2.5", "cached_input": "1.25", "output": "10"}, base_url)
    taught = stages.send(Console(quiet=True), project, grammar.generate(220, 5), threads=16, title="teach")
    assert {answer.served_by for answer in taught} == {"upstream:stand-in"}
    task = stages.wait_for_task(api, 160, lambda _: None)

    run_id = api.start_run(task["id"], CONFIG, project.upstream_id, ANY_STUDENT)
    until("the run", 1200, lambda: finished(api, run_id))
    assert {step["phase"] for step in api.steps(run_id)} >= {"sft", "grpo", "sft_all", "evaluate"}
    evaluation = api.evaluation(run_id)
    assert set(evaluation["candidates"]) >= {"base", "sft", "sft_all", "grpo"}

    takeover = stages.take_over(api, project, task, evaluation, lambda _: None)
    assert takeover.refusal is None
    stages.wait_for_student(project)
    _check_tokens(api)
    answers = stages.send(Console(quiet=True), project, grammar.generate(10, 6), threads=4, title="again")
    # After so few steps an answer may still be unusable; then the upstream answers, and the app does not notice.
    assert sum(stages.by_student(answer) for answer in answers) >= 5
    assert {answer.model for answer in answers} == {project.model}
    assert {answer.message.stream for answer in answers} == {True, False}
    assert all(answer.text for answer in answers)
    assert not stages.ask_something_else(project).startswith("student")
    with openai.OpenAI(base_url=project.endpoint.base_url, api_key=project.endpoint.api_key) as client:
        shaped = client.chat.completions.with_raw_response.create(
            model=project.model,
            messages=grammar.messages(grammar.generate(1, 7)[0].text),
            response_format={"type": "json_object"},
        )
    assert shaped.headers[app.SERVED_BY].startswith("upstream"), "the student's manifest has no response format"

    route_id = str(api.create_route("another-name", project.upstream_id, project.model, task["id"])["id"])
    unproven = {"stage": "live", "share": 1.0, "student_id": takeover.student, "reason": "without evidence"}
    with pytest.raises(ApiError) as refused:
        api.revise(route_id, unproven)
    assert refused.value.status in (409, 422), "no student serves without evidence"
