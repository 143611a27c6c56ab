"""Measures our relay beside others: `python -m bench.gateway`. Prints tables, then one line of JSON.

Method: one Node mock upstream on this machine; wrk with one thread, against one gateway at a time, the order the same
in every round; figures are medians over the rounds. Nothing is pinned to a core: client, gateway and mock share the
machine, as they would for a user who tries it. Ours stores what it captures while it is measured, up to ten seconds
behind (gateway.capture.pace); before the next gateway's turn it has stored all of it.
"""

from __future__ import annotations

import json
import os
import platform
import shutil
import socket
import subprocess
import sys
import tempfile
import time
from datetime import UTC, datetime
from importlib.metadata import version
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.gateway.peers import HERE, ROOT, Bench, Target, until
from gateway.core.ports import free_port

ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
SECONDS = int(os.environ.get("BENCH_SECONDS", "5"))
FIRST_BYTES = 200
PACED, GAP_MS = 20, 10
LOADS = {"1": (1, False), "16": (16, False), "64": (64, False), "stream": (16, True)}

Figures = dict[str, dict[str, list[dict[str, float]]]]


def main() -> None:
    """Everything, from starting the gateways to the written result."""
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="sd-bench-") as folder, Bench(Path(folder)) as bench:
        upstream = bench.mock()
        ours = bench.ours(upstream)
        targets = [upstream, bench.nginx(upstream), ours]
        targets += [bench.tensorzero(upstream), bench.portkey(upstream), bench.litellm(upstream)]
        time.sleep(5)
        memory = {"rss_idle_mb": ours.rss_mb()}
        figures: Figures = {target.name: {name: [] for name in LOADS} for target in targets}
        for number in range(ROUNDS):
            for target in targets:
                for name, (connections, stream) in LOADS.items():
                    figures[target.name][name].append(wrk(target, connections, stream))
                    if target is ours and name == "64":
                        memory["rss_loaded_mb"] = max(memory.get("rss_loaded_mb", 0), ours.rss_mb())
                until(target.settled, f"{target.name}'s writer")
            console.print(f"round {number + 1} of {ROUNDS} done")
        time.sleep(5)
        memory["rss_after_mb"] = ours.rss_mb()
        times = stream_times(upstream, ours)
        start = median(bench.start_s(free_port()) for _ in range(3))
    console.print(_table(figures))
    result = _keys(figures) | times | {"start_s": start} | memory
    result = {name: round(value, 3) for name, value in result.items()}
    _write(result, figures)
    print(json.dumps(result))


def wrk(target: Target, connections: int, stream: bool) -> dict[str, float]:
    """One load on one target."""
    headers = "\n".join(f"{name}: {value}" for name, value in target.all_headers().items())
    env = os.environ | {"BENCH_BODY": target.body(stream), "BENCH_HEADERS": headers}
    command = [
        "wrk", "-t1", f"-c{connections}", f"-d{SECONDS}s", "--timeout", "30s", "--latency",
        "-s", str(HERE / "load.lua"), target.url,
    ]  # fmt: skip
    done = subprocess.run(command, env=env, check=True, capture_output=True, text=True)
    found: dict[str, float] = json.loads(done.stdout.strip().splitlines()[-1])
    if found["errors"]:
        raise RuntimeError(f"{target.name}: {found['errors']:.0f} of {found['requests']:.0f} calls failed")
    return found | {"per_s": found["requests"] / found["seconds"]}


def stream_times(upstream: Target, ours: Target) -> dict[str, float]:
    """What a stream costs through us, the two asked in turn: by how much its first byte comes later (medians), and
    how evenly its pieces come, those of the upstream leaving every 10 ms (median and 99th percentile of the gaps)."""
    first: dict[str, list[float]] = {upstream.name: [], ours.name: []}
    gaps: dict[str, list[float]] = {upstream.name: [], ours.name: []}
    for number in range(FIRST_BYTES):
        for target in (upstream, ours):
            first[target.name].append(_arrivals_ms(target, gap_ms=0)[0])
            if number < PACED:
                arrivals = _arrivals_ms(target, gap_ms=GAP_MS)
                gaps[target.name] += [later - sooner for sooner, later in pairwise(arrivals)]
    result = {"ttfb_added_ms": median(first[ours.name]) - median(first[upstream.name])}
    for name, target in (("gap", ours), ("gap_upstream", upstream)):
        found = sorted(gaps[target.name])
        result |= {f"{name}_p50_ms": median(found), f"{name}_p99_ms": found[int(len(found) * 0.99)]}
    return result


def _arrivals_ms(target: Target, gap_ms: int) -> list[float]:
    """When pieces of a stream's body arrived, counted from sending the request."""
    host, _, port = target.url.split("/")[2].partition(":")
    body = target.body(stream=True, gap_ms=gap_ms).encode()
    lines = [f"host: {host}", f"content-length: {len(body)}", "connection: close"]
    lines += [f"{name}: {value}" for name, value in target.all_headers().items()]
    head = "\r\n".join(["POST /v1/chat/completions HTTP/1.1", *lines])
    arrivals: list[float] = []
    with socket.create_connection((host, int(port))) as connection:
        connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        began = time.perf_counter()
        connection.sendall(head.encode() + b"\r\n\r\n" + body)
        while received := connection.recv(65536):
            if b"data: " in received:
                arrivals.append((time.perf_counter() - began) * 1e3)
    return arrivals


def _keys(figures: Figures) -> dict[str, float]:
    def of(name: str, load: str, what: str) -> float:
        return median(run[what] for run in figures[name][load])

    ratios = {
        f"rps_ratio_{peer}": of("stepdown", "16", "per_s") / of(peer, "16", "per_s")
        for peer in ("tensorzero", "litellm", "portkey", "nginx")
    }
    return ratios | {
        "stream_ratio_tensorzero": of("stepdown", "stream", "per_s") / of("tensorzero", "stream", "per_s"),
        "p50_ratio_tensorzero": of("stepdown", "1", "p50_ms") / of("tensorzero", "1", "p50_ms"),
        "rps_16": of("stepdown", "16", "per_s"),
        "streams_16": of("stepdown", "stream", "per_s"),
        "p50_ms": of("stepdown", "1", "p50_ms"),
    }


def _table(figures: Figures) -> Table:
    table = Table(title="medians over the rounds", title_justify="left", box=None)
    table.add_column("")
    for heading in ("1: req/s", "p50 ms", "16: req/s", "p50 ms", "p99 ms", "64: req/s", "p99 ms", "16: streams/s"):
        table.add_column(heading, justify="right")
    for name, loads in figures.items():
        cells = [("1", "per_s"), ("1", "p50_ms"), ("16", "per_s"), ("16", "p50_ms"), ("16", "p99_ms")]
        cells += [("64", "per_s"), ("64", "p99_ms"), ("stream", "per_s")]
        values = [(what, median(run[what] for run in loads[load])) for load, what in cells]
        table.add_row(name, *(f"{value:,.0f}" if what == "per_s" else f"{value:.2f}" for what, value in values))
    return table


def _write(result: dict[str, float], figures: Figures) -> None:
    cpu = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    )
    document: dict[str, Any] = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {
            "cpu": cpu,
            "cores": os.cpu_count(),
            "python": platform.python_version(),
            "kernel": platform.release(),
        },
        "versions": {
            "stepdown": version("stepdown"),
            "tensorzero": "2026.6.0",
            "portkey": "1.15.2",
            "litellm": _litellm(),
        },
        "rounds": ROUNDS,
        "seconds": SECONDS,
        "result": result,
        "runs": figures,
    }
    path = ROOT / "bench" / "results" / f"gateway-{datetime.now(UTC):%Y-%m-%d}.json"
    path.parent.mkdir(exist_ok=True)
    path.write_text(json.dumps(document, indent=1) + "\n")


def _litellm() -> str:
    python = ROOT / ".bench" / "venv" / "bin" / "python"
    said = "from importlib.metadata import version; print(version('litellm'))"
    return subprocess.run([python, "-c", said], check=True, capture_output=True, text=True).stdout.strip()


if __name__ == "__main__":
    if shutil.which("wrk") is None:
        sys.exit("bench: run `make bench-gateway`, which says what is missing")
    main()
