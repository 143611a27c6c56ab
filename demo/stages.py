"""The stages of the demo, one function each, in the order in which they happen.

Owns what is done through the API and what is waited for; shows nothing but progress, decides nothing about figures.
"""

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Any

import openai
from rich.console import Console

from demo import app, grammar, score
from demo.api import Api, ApiError, Json
from demo.settings import BARS, SCORER, Settings, Upstream
from demo.system import DemoError

CANDIDATES = ("base", "sft", "sft_all", "grpo")
TASK_S = 180.0
DEPLOY_S = 420.0
ROUTE_S = 30.0
POLL_S = 0.5
_PROJECT = "demo "
ALONE = 20
"""Messages that the student's own speed is measured with, one at a time."""


@dataclass(frozen=True)
class Project:
    """What the app needs, and what the demo made for it."""

    name: str
    upstream_id: str
    endpoint: app.Endpoint

    @property
    def model(self) -> str:
        return self.endpoint.model


@dataclass(frozen=True)
class Scored:
    """Every candidate's answers to the same test messages, right or wrong against the truth."""

    outputs: dict[str, list[str]]  # by candidate, `teacher` among them
    hits: dict[str, list[bool]]
    truths: list[dict[str, str | bool]]


@dataclass(frozen=True)
class Takeover:
    """Who answers now. `refusal`: why the release was refused, in the gate's words; then there is no student."""

    refusal: str | None
    before: Json
    after: Json
    student: str | None = None


def set_aside_earlier(api: Api) -> int:
    """Students of earlier demos make room: routes back to the upstream, engines ended. Returns how many there were."""
    students = 0
    for project in api.projects():
        if not project["name"].startswith(_PROJECT):
            continue
        api.project = project["id"]
        loaded = [student for student in api.students() if student["deployment"] and student["deployment"]["wanted"]]
        if not loaded:
            continue
        for route in api.routes():
            if route["revision"]["stage"] != "observe":
                api.revise(route["id"], {"stage": "observe", "share": 0.0, "reason": "another demo begins"})
        for student in loaded:
            api.unload(student["id"])
        students += len(loaded)
    return students


def prepare(api: Api, upstream: Upstream, prices: Mapping[str, str] | None, base_url: str) -> Project:
    """A fresh project with the upstream, its price and terms, a key, and a route that only observes."""
    name = f"{_PROJECT}{datetime.now().astimezone():%Y-%m-%d %H:%M:%S}"
    api.create_project(name)
    upstream_id = api.create_upstream(
        {
            "name": upstream.name,
            "kind": "openai",
            "base_url": base_url,
            "model": upstream.model,
            "api_key": upstream.api_key,
            "train_on_output": "allowed",
            "judge_with": "allowed",
            "terms_source": upstream.terms,
            "prices": prices and {f"{kind}_per_mtok": price for kind, price in prices.items()},
        }
    )
    api.create_route(upstream.model, upstream_id, upstream.model)
    project = Project(name, upstream_id, app.Endpoint(f"{api.url}/v1", api.create_key("demo app"), upstream.model))
    wait_until_known(project)
    return project


def wait_until_known(project: Project) -> None:
    """Returns once the data plane knows the new key and its route: it looks for changes a few times a second."""
    deadline = time.monotonic() + ROUTE_S
    last: object = None
    with openai.OpenAI(base_url=project.endpoint.base_url, api_key=project.endpoint.api_key) as client:
        while time.monotonic() < deadline:
            try:
                last = [model.id for model in client.models.list()]
                if project.model in last:
                    return
            except openai.OpenAIError as error:
                last = error
            time.sleep(POLL_S)
    raise DemoError(f"After {ROUTE_S:.0f} s the gateway does not offer {project.model} to the new key: {last}")


def send(
    console: Console, project: Project, tickets: Sequence[grammar.Ticket], *, threads: int, title: str
) -> list[app.Answer]:
    """The app script over the tickets. Raises DemoError when more than one call in twenty failed."""
    answers = app.run(app.inbox(tickets), project.endpoint, console, threads=threads, title=f"  {title:<30}")
    failed = [answer.error for answer in answers if answer.error]
    if len(failed) * 20 > len(answers):
        raise DemoError(f"{len(failed)} of {len(answers)} calls failed, the first with: {failed[0]}")
    return answers


def wait_for_task(api: Api, calls: int, tell: Callable[[str], None]) -> Json:
    """The task that Stepdown recognises, once all `calls` are stored. Raises DemoError when none shows in time."""
    deadline = time.monotonic() + TASK_S
    while time.monotonic() < deadline:
        for task in api.tasks():
            if task["calls"] >= calls:
                return task
            tell(f"{task['calls']} of {calls} calls stored")
        time.sleep(POLL_S)
    raise DemoError(f"No task with {calls} calls after {TASK_S:.0f} s; found {api.tasks()}. See `stepdown status`.")


def start_run(api: Api, project: Project, task: Json, config: Mapping[str, Any]) -> str:
    """Queues the run, its bars declared with it."""
    return api.start_run(task["id"], config, project.upstream_id, BARS)


def score_outputs(api: Api, evaluation: Json, truth_of: Mapping[str, dict[str, str | bool]]) -> Scored:
    """Scores all candidates against the truth and posts the scorer's word to the evaluation, the teacher's too."""
    outputs: dict[str, list[str]] = {}
    hits: dict[str, list[bool]] = {}
    truths: list[dict[str, str | bool]] = []
    for candidate in (name for name in CANDIDATES if name in evaluation["candidates"]):
        rows = api.outputs(evaluation["id"], candidate)
        truths = [truth_of[str(row["input"][-1]["content"])] for row in rows]
        for name, key in ((candidate, "output"), ("teacher", "reference")):
            outputs[name] = [str(row[key]) for row in rows]
            hits[name] = [score.right(text, truth) for text, truth in zip(outputs[name], truths, strict=True)]
            results = {str(row["row"]): hit for row, hit in zip(rows, hits[name], strict=True)}
            api.post_external(evaluation["id"], SCORER, name, results)
    return Scored(outputs, hits, truths)


def take_over(api: Api, project: Project, task: Json, evaluation: Json, tell: Callable[[str], None]) -> Takeover:
    """Releases the winner, loads it, and makes the route live, if the bars allow it."""
    route_id = str(api.create_route(project.model, project.upstream_id, project.model, task["id"])["id"])
    before: Json = api.route(route_id)["revision"]
    try:
        released = api.release(evaluation["id"])
    except ApiError as error:
        if error.status != 409:
            raise
        return Takeover(str(error), before, before)
    wait_for_deployment(api, released["deployment_id"], tell)
    revision = {
        "stage": "live",
        "share": 1.0,
        "student_id": released["student_id"],
        "evaluation_id": evaluation["id"],
        "reason": "the demo's bars are cleared",
    }
    api.revise(route_id, revision)
    return Takeover(None, before, api.route(route_id)["revision"], released["student_id"])


def wait_for_deployment(api: Api, deployment_id: str, tell: Callable[[str], None]) -> None:
    """Returns once the student's engine is ready. Raises DemoError when it fails or takes too long."""
    deadline = time.monotonic() + DEPLOY_S
    while time.monotonic() < deadline:
        deployment = api.deployment(deployment_id)
        if deployment["state"] == "ready":
            return
        if deployment["state"] == "failed":
            raise DemoError(f"The student could not be loaded: {deployment['error']}")
        tell(f"the engine is {deployment['state']}")
        time.sleep(POLL_S)
    raise DemoError(f"The student is not loaded after {DEPLOY_S:.0f} s. See `stepdown status` and the engine's log.")


def wait_for_student(project: Project) -> None:
    """Returns once a call is answered by the student: every gateway has to see the new revision first."""
    deadline = time.monotonic() + ROUTE_S
    probe = app.inbox(grammar.generate(1, 990))
    answer = None
    while time.monotonic() < deadline:
        [answer] = app.triage_all(probe, project.endpoint)
        if by_student(answer):
            return
        time.sleep(POLL_S)
    raise DemoError(f"The route is live, but after {ROUTE_S:.0f} s the student does not answer: {answer}")


def by_student(answer: app.Answer) -> bool:
    return (answer.served_by or "").startswith("student")


def ask_something_else(project: Project) -> str:
    """Who answers another prompt under the same model name: never the student."""
    with openai.OpenAI(base_url=project.endpoint.base_url, api_key=project.endpoint.api_key) as client:
        raw = client.chat.completions.with_raw_response.create(
            model=project.model, messages=[{"role": "user", "content": "Which day follows Monday? One word."}]
        )
    served_by = raw.headers.get(app.SERVED_BY) or "unknown"
    if served_by.startswith("student"):
        raise DemoError(f"Another prompt was answered by {served_by}: only the task's own calls may be.")
    return served_by


def measure(project: Project, settings: Settings) -> tuple[list[app.Answer], float]:
    """The student one call at a time, and its calls per second with the app's threads. Fallbacks count for neither."""
    tickets = grammar.generate(ALONE + settings.live_calls, settings.seed + 2000)
    alone = app.triage_all(app.inbox(tickets[:ALONE]), project.endpoint, threads=1)
    started = time.perf_counter()
    crowd = app.triage_all(app.inbox(tickets[ALONE:]), project.endpoint, threads=settings.threads)
    seconds = time.perf_counter() - started
    mine = [answer for answer in alone if by_student(answer)]
    served = sum(by_student(answer) for answer in crowd)
    if not mine or not served:
        raise DemoError(f"None of {len(tickets)} measured calls was answered by the student: all fell back.")
    return mine, served / seconds
