"""The demo from start to report: drives Stepdown through its public interfaces, as its user would.

Owns the order of the stages, what is said about them, and the end of every process the demo started.
"""

import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager, suppress
from typing import Any

import httpx
from rich.console import Console
from rich.status import Status

from demo import app, grammar, report, stages, system, tables
from demo.api import Api, ApiError, admin_token
from demo.follow import Watch
from demo.report import Findings
from demo.settings import Settings, Upstream, settings, upstream
from demo.system import Child, DemoError

# What the demo sets other than the run's defaults: of 1,500 messages some 330 are the test.
# Sized for two CPU cores and a quarter of an hour; everything else is what any run has by default.
RUN_CONFIG: dict[str, Any] = {
    "split": {"train": 0.67, "validation": 0.11, "test": 0.22},
    "sft_all_steps": 180,
    "grpo_steps": 30,
    "judge_concurrency": 32,
}


class Demo:
    """One performance. `children` are ended in reverse order, whatever happens."""

    def __init__(self, console: Console, chosen: Settings, frontier: Upstream) -> None:
        self.console = console
        self.settings = chosen
        self.upstream = frontier
        self.children: list[Child] = []
        self.found = Findings(chosen, frontier, frontier.prices)
        self.unfinished: Callable[[], None] | None = None  # cancels the run that is under way
        self._count = 0

    @contextmanager
    def stage(self, name: str, title: str) -> Iterator[Callable[[str], None]]:
        """Announces a stage and takes its time. Yields a function that says what it is waiting for."""
        self._count += 1
        self.console.print(f"[bold cyan]{self._count}[/] [bold]{title}[/]")
        started = time.monotonic()
        status: Status | None = self.console.status("") if self.console.is_terminal else None

        def tell(text: str) -> None:
            if status is not None:
                status.update(f"[dim]{text}")
                status.start()

        try:
            yield tell
        finally:
            if status is not None:
                status.stop()
            self.found.stages[name] = time.monotonic() - started
        self.console.print(f"  [dim]done in {_time(self.found.stages[name])}[/]")

    def say(self, text: str) -> None:
        self.console.print(f"  {text}", highlight=False)

    def play(self) -> Api:
        """Every stage, up to the printed report."""
        api = self._start()
        project = self._connect(api)
        tickets = grammar.generate(self.settings.calls, self.settings.seed)
        with self.stage("traffic", f"The app sends {len(tickets)} calls; the frontier model answers"):
            self.found.taught = stages.send(
                self.console, project, tickets, threads=self.settings.threads, title="app → Stepdown → teacher"
            )
        task = self._train(api, project)
        self._take_over(api, project, task, tickets)
        self.found.usage = api.usage()
        document = report.build(self.found)
        path = report.write(document, system.home())
        tables.show(document, self.console)
        self.console.print(f"Written to {path}")
        return api

    def _start(self) -> Api:
        with self.stage("start", "Start Stepdown") as tell:
            api = system.running()
            if api is not None:
                self.say(f"it runs already at {api.url}; the demo uses it and leaves it running")
                return api
            tell("stepdown up")
            api, child = system.start_stepdown(tell)
            self.children.append(child)
            self.say(f"gateway, dashboard and API at {api.url}")
            return api

    def _connect(self, api: Api) -> stages.Project:
        """The frontier model, and a project that knows it."""
        if self.upstream.stand_in:
            title = "Start the teacher: a scripted stand-in for a frontier model"
        else:
            title = f"Use {self.upstream.name} as the teacher"
        with self.stage("connect", title):
            base_url = self.upstream.base_url or self._start_teacher()
            if self.upstream.prices is None and not self.upstream.stand_in:
                self.say(
                    "[yellow]its prices are unknown: set DEMO_PRICES=input,cached,output (USD per million tokens)[/]"
                )
                self.say("[yellow]your account pays for every call and every judgement[/]")
            if earlier := stages.set_aside_earlier(api):
                self.say(f"students of earlier demos are unloaded: {earlier}; their routes are back at the upstream")
            project = stages.prepare(api, self.upstream, self.found.prices, base_url)
            self.found.project = project.name
            self.say(f"project {project.name!r}; open {api.url} to watch, admin token {admin_token(system.home())}")
            self.say(f"the app's base URL is now {project.endpoint.base_url}, its model name stays {project.model}")
            return project

    def _start_teacher(self) -> str:
        chosen = self.settings
        base_url, child = system.start_teacher(chosen.delay_ms, chosen.judge_delay_ms, self.upstream.api_key)
        self.children.append(child)
        prices = httpx.get(base_url.removesuffix("/v1") + "/prices", timeout=10).json()
        self.found.prices = {name: prices[name] for name in ("input", "cached_input", "output")}
        self.say(f"stand-in {self.upstream.model} at {base_url}, median delay {chosen.delay_ms:.0f} ms")
        return base_url

    def _train(self, api: Api, project: stages.Project) -> dict[str, Any]:
        good = sum(answer.error is None for answer in self.found.taught)
        with self.stage("task", "Stepdown stores the calls and recognises the task") as tell:
            task = stages.wait_for_task(api, good, tell)
            self.say(f"task {task['name']!r}: {task['calls']} calls, {task['trainable_calls']} to learn from")
        with self.stage("run", "Learn the task: warm start, GRPO, the honest rival, evaluation"):
            config = {**RUN_CONFIG, **self.settings.config}
            run_id = stages.start_run(api, project, task, config)
            self.unfinished = lambda: api.cancel(run_id)
            watch = Watch(self.console)
            self.found.run = watch.follow(api, run_id)
            self.unfinished = None
            self.found.phases = watch.seconds
        return task

    def _take_over(
        self, api: Api, project: stages.Project, task: dict[str, Any], tickets: list[grammar.Ticket]
    ) -> None:
        truths = {ticket.text: ticket.truth for ticket in tickets}
        with self.stage("score", "Score every candidate against the truth"):
            evaluation = api.evaluation(self.found.run["id"])
            self.found.scored = stages.score_outputs(api, evaluation, truths)
            self.found.evaluation = evaluation = api.evaluation(self.found.run["id"])
            self.say(f"validation chose {evaluation['winner']}")
        with self.stage("release", "Release the student, load it, change the route") as tell:
            takeover = stages.take_over(api, project, task, evaluation, tell)
            self.found.takeover = takeover
            if takeover.refusal:
                self.say(f"[red]refused:[/] {takeover.refusal}")
                return
            stages.wait_for_student(project)
            self.say(f"route revision {takeover.before['number']} → {takeover.after['number']}: the student is live")
        with self.stage("again", "The same app again, unchanged"):
            self._again(project)
        with self.stage("measure", "Measure the student's speed"):
            self.found.alone, self.found.per_second = stages.measure(project, self.settings)
            self.say(f"{self.found.per_second:.1f} calls a second")

    def _again(self, project: stages.Project) -> None:
        fresh = grammar.generate(self.settings.live_calls, self.settings.seed + 1000)
        self.found.live_tickets = fresh
        self.found.live = stages.send(
            self.console, project, fresh, threads=self.settings.live_threads, title="app → Stepdown → student"
        )
        example = next((answer for answer in self.found.live if stages.by_student(answer)), None)
        if example is not None:
            self.say(f"[dim]{app.SERVED_BY}: {example.served_by}   model: {example.model}[/]")
        self.found.other_prompt = stages.ask_something_else(project)

    def wait(self, api: Api) -> None:
        """Leaves everything running until Ctrl-C. Raises DemoError when something ends by itself."""
        token = admin_token(system.home())
        self.console.print(f"\nStepdown runs on. Dashboard: [bold]{api.url}[/]   admin token: {token}", highlight=False)
        self.console.print("Ctrl-C stops what the demo started; nothing is lost.")
        while True:
            for child in self.children:
                child.check()
            time.sleep(1)

    def stop(self) -> None:
        """Ends what the demo started. A second Ctrl-C is ignored: half an end is what it would leave."""
        signal.signal(signal.SIGINT, signal.SIG_IGN)
        signal.signal(signal.SIGTERM, signal.SIG_IGN)
        if self.unfinished is not None:  # its judge ends with the demo: it would wait for it in vain
            with suppress(ApiError):
                self.unfinished()
                self.console.print("[dim]the demo's run is cancelled[/]")
        for child in reversed(self.children):
            self.console.print(f"[dim]stopping {child.name} (pid {child.process.pid})[/]", highlight=False)
            child.stop()


def main() -> int:
    """Exit status: 0 after the report, 1 when something went wrong, 130 when interrupted before it."""
    console = Console()
    if not console.is_terminal:
        console.width = 140  # a log or a pipe has no width of its own
    signal.signal(signal.SIGTERM, _interrupt)
    signal.signal(signal.SIGINT, _interrupt)  # a shell that starts it in the background had it ignored
    demo: Demo | None = None
    reported = False
    try:
        demo = Demo(console, settings(), upstream())
        api = demo.play()
        reported = True
        if not demo.settings.exit:
            demo.wait(api)
        return 0
    except (DemoError, ApiError) as error:
        console.print(f"[bold red]demo:[/] {error}", highlight=False, soft_wrap=True)
        return 1
    except KeyboardInterrupt:
        console.print("\n[dim]interrupted[/]")
        return 0 if reported else 130
    finally:
        if demo is not None:
            demo.stop()


def _interrupt(_signal: int, _frame: object) -> None:
    raise KeyboardInterrupt


def _time(seconds: float) -> str:
    return f"{seconds:.1f} s" if seconds < 60 else f"{seconds // 60:.0f} min {seconds % 60:.0f} s"
