"""A long run at a steady load: `python -m bench.gateway.soak [MINUTES] [CALLS_PER_S]`, 30 minutes at 2,700 by default,
half of what the relay does at 16 connections here. A quarter of the calls are streamed.

Each minute gives one row: calls, latency, and what the gateway and its writer hold of memory and descriptors. What
must stay flat is in the last line of JSON as the last third over the first.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

import psutil
from rich.console import Console

from bench.gateway.peers import HERE, ROOT, Bench, Target, until

MINUTE_S = int(os.environ.get("BENCH_SECONDS", "60"))
CONNECTIONS = {False: 12, True: 4}
TAIL_MS = 1.5  # what an answer takes, in the time that wrk waits between two of a connection


def main(minutes: int, calls_per_s: int) -> None:
    """Everything, from starting the gateway to the written result."""
    console = Console(width=110)
    delay_ms = sum(CONNECTIONS.values()) * 1000 / calls_per_s - TAIL_MS
    with tempfile.TemporaryDirectory(prefix="sd-soak-") as folder, Bench(Path(folder)) as bench:
        ours = bench.ours(bench.mock())
        rows: list[dict[str, float]] = []
        for minute in range(minutes):
            rows.append(_loads(ours, max(delay_ms, 0.0)) | _held(Path(folder)))
            shown = ", ".join(f"{name} {value:,.2f}" for name, value in rows[-1].items())
            console.print(f"minute {minute + 1} of {minutes}: {shown}", soft_wrap=True)
        began = time.monotonic()
        until(ours.settled, "the writer", limit_s=600)
        result = _flatness(rows) | {"stored_after_s": time.monotonic() - began}
    result = {name: round(value, 3) for name, value in result.items()}
    path = ROOT / "bench" / "results" / f"soak-{datetime.now(UTC):%Y-%m-%d}.json"
    document = {"date": datetime.now(UTC).isoformat(timespec="seconds"), "cores": os.cpu_count()}
    path.write_text(json.dumps(document | {"result": result, "minutes": rows}, indent=1) + "\n")
    print(json.dumps(result))


def _loads(target: Target, delay_ms: float) -> dict[str, float]:
    """A minute of whole answers and streams side by side. Raises RuntimeError where a call failed."""
    headers = "\n".join(f"{name}: {value}" for name, value in target.all_headers().items())
    running = {
        stream: subprocess.Popen(
            ["wrk", "-t1", f"-c{count}", f"-d{MINUTE_S}s", "--latency", "-s", str(HERE / "load.lua"), target.url],
            env=os.environ
            | {"BENCH_BODY": target.body(stream), "BENCH_HEADERS": headers, "BENCH_DELAY_MS": str(delay_ms)},
            stdout=subprocess.PIPE,
            text=True,
        )
        for stream, count in CONNECTIONS.items()
    }
    found: dict[bool, dict[str, Any]] = {
        stream: json.loads(process.communicate()[0].strip().splitlines()[-1]) for stream, process in running.items()
    }
    if failed := sum(each["errors"] for each in found.values()):
        raise RuntimeError(f"{failed:.0f} calls failed")
    return {
        "calls_s": sum(each["requests"] / each["seconds"] for each in found.values()),
        "p50_ms": found[False]["p50_ms"],
        "p99_ms": found[False]["p99_ms"],
        "stream_p50_ms": found[True]["p50_ms"],
        "stream_p99_ms": found[True]["p99_ms"],
    }


def _held(folder: Path) -> dict[str, float]:
    """Memory and descriptors of the gateway and the writer, and what waits to be stored."""
    state = json.loads((folder / "home" / "state.json").read_text())
    held: dict[str, float] = {}
    for child in state["children"]:
        if child["name"] in ("gateway", "writer"):
            process = psutil.Process(child["pid"])
            held[f"{child['name']}_rss_mb"] = process.memory_info().rss / 1e6
            held[f"{child['name']}_descriptors"] = process.num_fds()
    spool = folder / "home" / "spool"
    held["spool_mb"] = sum(file.stat().st_size for file in spool.rglob("*") if file.is_file()) / 1e6
    return held


def _flatness(rows: list[dict[str, float]]) -> dict[str, float]:
    """The medians of each figure's last third over those of its first (the first minute, a start, left out)."""
    third = max(len(rows) // 3, 1)
    first, last = rows[1 : third + 1] or rows[:1], rows[-third:]
    result: dict[str, float] = {"minutes": len(rows)}
    for name in rows[0]:
        before, after = (median(row[name] for row in part) for part in (first, last))
        result[name] = after
        result[f"{name}_growth"] = after / before if before else 0.0
    return result


if __name__ == "__main__":
    chosen = [int(value) for value in sys.argv[1:]]
    main(*(chosen + [30, 2700][len(chosen) :]))
