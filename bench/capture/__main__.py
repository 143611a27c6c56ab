"""Measures capture: `python -m bench.capture`. Prints what it finds, then one line of JSON.

Zero loss: a whole Stepdown is asked by sixteen clients while its gateway, its writer and its PostgreSQL are killed
(`kill -9`) at random times; every call whose last byte reached a client must be in the database exactly once, and so
must its charge. Storing: how fast the writer's code stores what lies spooled, its CPU time and PostgreSQL's, and the
bytes that recorded agents' conversations take.

BENCH_CALLS: calls to be answered under fire (20000). BENCH_STORED: calls stored for the rate (20000). BENCH_SEED: of
the times of the kills. AIRLINE: the conversations (one JSON object a line, gzip); without them the ratio is null.
"""

from __future__ import annotations

import asyncio
import json
import os
import platform
import tempfile
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from bench.capture import losing
from bench.capture.repository import stored_bytes
from bench.capture.storing import airline, chats, spooled, store
from bench.gateway.peers import ROOT, Bench
from gateway.core.embedded import Postgres, running
from gateway.core.migrate import upgrade_head

CALLS = int(os.environ.get("BENCH_CALLS", "20000"))
STORED = int(os.environ.get("BENCH_STORED", "20000"))
SEED = int(os.environ.get("BENCH_SEED", "1"))
AIRLINE = Path(os.environ.get("AIRLINE", ROOT.parent / "shared" / "data" / "airline_agent.jsonl.gz"))


def main() -> None:
    """Everything, from starting Stepdown to the written result."""
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="sd-bench-") as folder:
        result = _under_fire(console, Path(folder))
        result |= _storing(console, Path(folder) / "store")
    result = {name: round(value, 4) if isinstance(value, float) else value for name, value in result.items()}
    _write(result)
    print(json.dumps(result))


def _under_fire(console: Console, folder: Path) -> dict[str, Any]:
    columns = TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[more]}"), TimeElapsedColumn()
    with Bench(folder) as bench, Progress(*columns, console=console) as progress:
        target = bench.ours(bench.mock())
        home = folder / "home"
        bar = progress.add_task(f"{CALLS:,} calls under fire", total=CALLS, more="")

        def told(seen: losing.Answered) -> None:
            kills = ", ".join(f"{name} {times}" for name, times in sorted(seen.kills.items()))
            progress.update(bar, completed=len(seen.ids), more=f"killed: {kills or 'nobody yet'}")

        seen = asyncio.run(losing.run(target, home, CALLS, SEED, told))
        url = json.loads((home / "secrets" / "endpoints.json").read_text())["database"]
        found = losing.settled(home, url, seen)
    console.print(f"{len(seen.ids):,} answered of {seen.tries:,} tried; {found}")
    return asdict(found) | {"calls_answered": len(seen.ids), "kills": sum(seen.kills.values())}


def _storing(console: Console, home: Path) -> dict[str, Any]:
    home.mkdir()
    postgres = Postgres(home)
    with running(postgres, home / "postgres.log"):
        os.environ["DATABASE_URL"] = postgres.url
        upgrade_head()
        result: dict[str, Any] = {"stored_ratio": None, "stored_ratio_with_indexes": None}
        if AIRLINE.exists():
            calls, size = spooled(home / "airline", airline(AIRLINE))
            store(home / "airline", home)
            stored = stored_bytes()
            result["stored_ratio"] = stored["rows"] / size
            result["stored_ratio_with_indexes"] = stored["total"] / size
            console.print(f"{calls:,} calls of agents: {size:,} bytes of JSON, stored as {stored}")
        calls, _ = spooled(home / "chats", chats(STORED))
        spent = store(home / "chats", home)
        result["ingest_calls_s"] = calls / spent["seconds"]
        result["writer_cpu_us_per_call"] = spent["writer_cpu"] / calls * 1e6
        result["postgres_cpu_us_per_call"] = spent["postgres_cpu"] / calls * 1e6
        console.print(f"{calls:,} short calls stored in {spent['seconds']:.1f} s")
    return result


def _write(result: dict[str, Any]) -> None:
    lines = Path("/proc/cpuinfo").read_text().splitlines()
    cpu = next(line.partition(":")[2].strip() for line in lines if "model name" in line)
    document = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version()},
        "seed": SEED,
        "result": result,
    }
    path = ROOT / "bench" / "results" / f"capture-{datetime.now(UTC):%Y-%m-%d}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


if __name__ == "__main__":
    main()
