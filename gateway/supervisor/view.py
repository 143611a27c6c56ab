"""Owns what a person sees of the supervisor: one live table on a terminal, plain lines elsewhere."""

from __future__ import annotations

import time
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from rich.console import Console
from rich.live import Live
from rich.table import Table
from rich.text import Text

_COLOURS = {"ready": "green", "done": "green", "restarting": "yellow", "failed": "red", "starting": "cyan"}
Row = Mapping[str, Any]


def duration(seconds: float) -> str:
    """12 s, 3 min, 5 h, 2 d."""
    for size, unit in ((86400, "d"), (3600, "h"), (60, "min")):
        if seconds >= 2 * size or (unit == "min" and seconds >= 60):
            return f"{seconds / size:.0f} {unit}"
    return f"{seconds:.0f} s"


def table(rows: Iterable[Row], address: str) -> Table:
    """The status table: one line per process."""
    shown = Table(title=f"Stepdown  {address}", title_justify="left", title_style="bold", box=None, pad_edge=False)
    for heading in ("what", "state", "pid", "up", "restarts", "where"):
        shown.add_column(heading, justify="right" if heading in ("pid", "up", "restarts") else "left")
    for row in rows:
        running = row["pid"] is not None
        shown.add_row(
            row["name"],
            Text(row["state"], style=_COLOURS.get(row["state"], "dim")),
            str(row["pid"]) if running else "",
            duration(time.time() - row["since"]) if running else "",
            str(row["restarts"] or ""),
            Text(row["detail"] or row["url"] or "", overflow="ellipsis", no_wrap=True),
        )
    return shown


class View:
    """Shows rows as they change. Use as a context manager."""

    def __init__(self, console: Console, address: str) -> None:
        self.console = console
        self.address = address
        self._live = Live(console=console, auto_refresh=False, transient=False) if console.is_terminal else None
        self._known: dict[str, tuple[str, str]] = {}

    def __enter__(self) -> View:
        if self._live:
            self._live.start()
        return self

    def __exit__(self, *_: object) -> None:
        if self._live:
            self._live.stop()

    def say(self, line: str) -> None:
        self.console.print(line, highlight=False, markup=False, soft_wrap=True)

    def show(self, rows: Sequence[Row]) -> None:
        if self._live:
            self._live.update(table(rows, self.address), refresh=True)
            return
        for row in rows:
            if row["state"] == "waiting":
                continue
            now = (row["state"], row["detail"])
            if self._known.get(row["name"]) != now:
                self._known[row["name"]] = now
                where = row["url"] or "" if row["state"] == "starting" else row["detail"] or row["url"] or ""
                self.say(f"{time.strftime('%H:%M:%S')}  {row['name']:<12} {row['state']:<11} {where}".rstrip())
