"""Measures the dashboard's queries among many calls: `python -m bench.data`. Prints a table, then one line of JSON.

A PostgreSQL of its own is filled with synthetic calls as the writer copies them (BENCH_CALLS, a million by default);
then the call list's own query is asked with different values for each of its filters, the page after the fifth among
them, and with values that nothing has.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import random
import tempfile
import time
from collections.abc import Callable
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from statistics import median
from typing import Any
from uuid import UUID

from rich.console import Console
from rich.progress import track
from rich.table import Table

from bench.data.calls import WORDS, synthetic, world
from bench.data.repository import analysed_bytes
from bench.gateway.peers import ROOT
from gateway.admin.repository.calls import CallFilter, page
from gateway.capture.repository import ensure_partitions
from gateway.core.db import async_engine, async_session, copy_rows, session_scope
from gateway.core.embedded import Postgres, running
from gateway.core.migrate import upgrade_head
from gateway.models import Call

CALLS = int(os.environ.get("BENCH_CALLS", "1000000"))
BATCH = 2000
TIMES = 60
PAGE = 50


def main() -> None:
    """Everything, from an empty database to the written result."""
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="sd-bench-") as folder:
        home = Path(folder)
        postgres = Postgres(home)
        with running(postgres, home / "postgres.log"):
            os.environ["DATABASE_URL"] = postgres.url
            upgrade_head()
            result, found = _measured(console)
    console.print(_table(found))
    result = {name: round(value, 3) for name, value in result.items()}
    document: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cores": os.cpu_count(), "python": platform.python_version(), "kernel": platform.release()},
        "calls": CALLS,
        "result": result,
        "p50_p95_max_ms": {name: _spread(values) for name, values in found.items()},
    }
    path = ROOT / "bench" / "results" / f"data-{datetime.now(UTC):%Y-%m-%d}.json"
    path.write_text(json.dumps(document, indent=1) + "\n")
    print(json.dumps(result))


def _measured(console: Console) -> tuple[dict[str, float], dict[str, list[float]]]:
    with session_scope() as session:
        ensure_partitions(session)
        project, upstream, tasks = world(session)
        project_id, task_ids = project.id, [task.id for task in tasks]
        rows = synthetic(CALLS, project, upstream, tasks)
    spent = 0.0
    for _ in track(range(-(-CALLS // BATCH)), description=f"{CALLS:,} calls", console=console):
        batch = list(islice(rows, BATCH))
        began = time.perf_counter()
        with session_scope() as session:
            copy_rows(session, Call, batch)
        spent += time.perf_counter() - began
    table_bytes, index_bytes = analysed_bytes()
    found = asyncio.run(_asked(project_id, task_ids))
    listed = [value for name, values in found.items() if not name.startswith("text") for value in values]
    searched = [value for name, values in found.items() if name.startswith("text") for value in values]
    result = {
        "call_list_p95_ms": max(_spread(values)[1] for name, values in found.items() if not name.startswith("text")),
        "call_list_median_ms": median(listed),
        "text_search_p95_ms": _spread(searched)[1],
        "insert_calls_s": CALLS / spent,
        "bytes_a_call": table_bytes / CALLS,
        "index_bytes_a_call": index_bytes / CALLS,
    }
    return result, found


async def _asked(project_id: UUID, tasks: list[UUID]) -> dict[str, list[float]]:
    """Milliseconds of each query, by what the list was narrowed to."""
    draw = random.Random(2)
    kinds: dict[str, Callable[[], CallFilter]] = {
        "no filter": CallFilter,
        "task": lambda: CallFilter(task=draw.choice(tasks)),
        "status error": lambda: CallFilter(status="error"),
        "status 429": lambda: CallFilter(status="429"),
        "status 418, which nothing has": lambda: CallFilter(status="418"),
        "served by a student": lambda: CallFilter(served_by="student"),
        "trajectory": lambda: CallFilter(trajectory=f"conversation-{draw.randrange(max(CALLS // 15, 1))}"),
        "task and error": lambda: CallFilter(task=draw.choice(tasks), status="error"),
        "text, one word": lambda: CallFilter(text=draw.choice(WORDS)),
        "text, three words": lambda: CallFilter(text=" ".join(draw.sample(WORDS, 3))),
        "text, a beginning": lambda: CallFilter(text=draw.choice(WORDS)[:3]),
        "text, which nothing has": lambda: CallFilter(text="xylophone"),
        "text and task": lambda: CallFilter(text=draw.choice(WORDS), task=draw.choice(tasks)),
    }
    found: dict[str, list[float]] = {name: [] for name in [*kinds, "no filter, the sixth page"]}
    for _ in range(TIMES):
        for name, kind in kinds.items():
            found[name].append(await _ms(project_id, kind(), None))
        before = None
        for _ in range(5):
            async with async_session() as db:
                before = (await page(db, project_id, CallFilter(), limit=PAGE, before=before))[-1].id
        found["no filter, the sixth page"].append(await _ms(project_id, CallFilter(), before))
    await async_engine().dispose()
    return found


async def _ms(project_id: UUID, wanted: CallFilter, before: UUID | None) -> float:
    async with async_session() as db:
        began = time.perf_counter()
        await page(db, project_id, wanted, limit=PAGE, before=before)
        return (time.perf_counter() - began) * 1e3


def _spread(values: list[float]) -> tuple[float, float, float]:
    """Median, 95th percentile and the slowest."""
    ordered = sorted(values)
    return round(median(ordered), 2), round(ordered[int(len(ordered) * 0.95)], 2), round(ordered[-1], 2)


def _table(found: dict[str, list[float]]) -> Table:
    table = Table(title=f"the call list among {CALLS:,} calls", title_justify="left", box=None)
    table.add_column("narrowed to")
    for heading in ("p50 ms", "p95 ms", "slowest ms"):
        table.add_column(heading, justify="right")
    for name, values in found.items():
        table.add_row(name, *(f"{value:.1f}" for value in _spread(values)))
    return table


if __name__ == "__main__":
    main()
