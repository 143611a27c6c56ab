"""A run as it goes: one progress bar a phase, with the figures that matter beside it.

Owns the display and the wall-clock time of the phases; reads the run through the API and changes nothing.
"""

import time
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from demo.api import Api, Json
from demo.system import DemoError

POLL_S = 1.0
TITLES = {
    "freeze": "freeze the dataset",
    "sft": "warm start (SFT)",
    "grpo": "learn from judgement (GRPO)",
    "sft_all": "the rival: SFT on everything",
    "evaluate": "evaluate on the test split",
}
# The figures of a step that are shown, in this order, under any of these names.
SHOWN: tuple[tuple[str, tuple[str, ...]], ...] = (
    ("reward", ("reward", "reward_mean", "mean_reward")),
    ("loss", ("loss",)),
    ("kept", ("groups_kept", "kept_groups", "kept")),
    ("agree", ("validation_agreement", "agreement")),
)


class Watch:
    """The display of one run. `seconds` holds the wall-clock time that each phase took."""

    def __init__(self, console: Console) -> None:
        self.console = console
        self.seconds: dict[str, float] = {}
        self._bars: dict[str, TaskID] = {}
        self._since = time.monotonic()
        self._phase = ""
        self._told = ""
        self._metrics: dict[str, Any] = {}  # of the phase under way; not every step has every figure

    def follow(self, api: Api, run_id: str) -> Json:
        """Shows the run until it ends, and returns it. Raises DemoError when it pauses or does not succeed."""
        columns = (
            TextColumn("  {task.description:<32}"),
            BarColumn(bar_width=28),
            MofNCompleteColumn(),
            TimeElapsedColumn(),
            TextColumn("[dim]{task.fields[note]}"),
        )
        with Progress(*columns, console=self.console) as progress:
            while True:
                run = api.run(run_id)
                self._show(progress, run)
                if run["state"] not in ("queued", "running"):
                    self._enter("")
                    break
                time.sleep(POLL_S)
        if run["state"] != "succeeded":
            events = "\n".join(f"  {event['kind']}: {event['message']}" for event in api.events(run_id)[:5])
            raise DemoError(
                f"The run is {run['state']} in phase {run['phase']}: {run['error'] or 'no error'}\n{events}"
            )
        return run

    def _show(self, progress: Progress, run: Json) -> None:
        self._enter(str(run["phase"]))
        self._metrics |= run["metrics"]
        for phase in run["phases"]:
            name, planned = str(phase["name"]), int(phase["planned"])
            if name not in self._bars:
                title = TITLES.get(name, name)
                self._bars[name] = progress.add_task(title, total=planned, start=False, note="")
            bar = self._bars[name]
            state = phase["state"]
            if state != "pending" and not progress.tasks[bar].started:
                progress.start_task(bar)
            note = figures(self._metrics) if state == "running" else "" if state == "pending" else state
            progress.update(bar, total=max(planned, 1), completed=int(phase["step"]), note=note)
            if state in ("done", "skipped", "failed", "cancelled"):
                progress.stop_task(bar)
            self._tell(name, phase)

    def _tell(self, name: str, phase: Json) -> None:
        """Without a terminal, a line for each quarter of a phase instead of a moving bar."""
        if self.console.is_terminal or phase["state"] != "running":
            return
        quarter = 4 * int(phase["step"]) // max(int(phase["planned"]), 1)
        if self._told != (line := f"{name} {quarter}"):
            self._told = line
            done = f"{phase['step']}/{phase['planned']}"
            self.console.print(f"  {TITLES.get(name, name)}: {done}  {figures(self._metrics)}", highlight=False)

    def _enter(self, phase: str) -> None:
        now = time.monotonic()
        if phase != self._phase:
            if self._phase not in ("", "done"):
                self.seconds[self._phase] = self.seconds.get(self._phase, 0.0) + now - self._since
            self._phase, self._since, self._metrics = phase, now, {}


def figures(metrics: Mapping[str, Any]) -> str:
    """The figures of a step that people look at, in a few words."""
    words = []
    for label, names in SHOWN:
        value = next((metrics[name] for name in names if isinstance(metrics.get(name), int | float)), None)
        if value is not None:
            words.append(f"{label} {value:.3g}")
    return "  ".join(words)
