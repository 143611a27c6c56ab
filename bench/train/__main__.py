"""Measures training beside TRL's: `python -m bench.train [PART]…`. Prints tables, then one line of JSON.

Parts, all by default: `tune` (which of TRL's settings are fastest here), `sft`, `task`, `shapes` (speed), `memory`,
`parity`. Each adds its figures to the day's file in bench/results, so that they can be measured one after the other,
and rounds add up; the last line holds all that the file holds. A new day, or no file, begins anew.

Method: two processes, ours and TRL's (its own environment), both loaded, asked in turn; same tokens, model, type, LoRA
rank and targets, threads and environment; medians over the rounds. Each side at its best: ours at its defaults, TRL's
at the fastest of `CANDIDATES`. Memory is the process's peak of resident memory, in a fresh process for each piece of
work.
"""

from __future__ import annotations

import json
import os
import platform
import subprocess
import sys
import tempfile
from datetime import UTC, datetime
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.gateway.peers import ROOT
from bench.train import work
from bench.train.parity import compare
from bench.train.workers import Worker, ours, theirs
from distill.artifacts import ensure_base_model
from gateway.core.settings import settings
from rl.precision import native_precision
from rl.render import Renderer

RESULT = ROOT / "bench" / "results" / f"train-{datetime.now(UTC):%Y-%m-%d}.json"
ROUNDS = int(os.environ.get("BENCH_ROUNDS", "3"))
DTYPE = os.environ.get("BENCH_DTYPE", native_precision())
CANDIDATES: dict[str, list[dict[str, Any]]] = {
    # Packed rows of 512 tokens hold three calls, of 1,024 six; eighteen calls to an optimizer step.
    "sft": [
        {"length": length, "rows": rows, "steps": 6 * 512 // length // rows, "attention": attention, "bf16": bf16}
        for attention in ("sdpa", "eager")
        for bf16 in (True, False)
        for length, rows in ((512, 1), (1024, 1))
    ],
    "grpo": [
        {"rows": rows, "attention": attention, "bf16": bf16}
        for attention in ("sdpa", "eager")
        for bf16 in (True, False)
        for rows in (2, 4, 8)
    ],
}
SPEED = {"sft": ["sft_shared", "sft_distinct"], "task": ["grpo_task"], "shapes": ["grpo_512", "grpo_128"]}

Figures = dict[str, Any]


PARTS = ["tune", *SPEED, "memory", "parity"]


def main(parts: list[str]) -> None:
    """The parts named, then all that is known of the day."""
    if unknown := set(parts) - set(PARTS):
        sys.exit(f"bench: no part {', '.join(sorted(unknown))}; there are {', '.join(PARTS)}")
    console = Console(width=110)
    with tempfile.TemporaryDirectory(prefix="sd-bench-") as name:
        folder = Path(name)
        setup = {
            "model": str(ensure_base_model(settings().root, console.print)),
            "work": str(folder / "work.json"),
            "rank": 16,
            "alpha": 32,
            "seed": 0,
            "dtype": DTYPE,
        }
        (folder / "work.json").write_text(json.dumps(work.make(Renderer(setup["model"]))))
        runs = json.loads(RESULT.read_text())["runs"] if RESULT.exists() else {}
        for part in parts or PARTS:
            if part in SPEED:
                _speed(setup, SPEED[part], runs)
            elif part == "memory":
                _memory(setup, runs)
            else:
                runs |= _tune(setup) if part == "tune" else compare(setup, folder)
            known = _written(runs)
            console.print(f"{part}: done")
    console.print(_table(known))
    print(json.dumps({name: round(value, 6) for name, value in known["result"].items()}))


def ask(worker: Worker, name: str, best: Figures) -> dict[str, float]:
    """One piece of work by one side, at its best settings."""
    kind = name.partition("_")[0]
    return worker.ask(kind, name=name, **(best[kind] if worker.name == "trl" else {}))


def _tune(setup: dict[str, Any]) -> Figures:
    """TRL's candidates on a small piece of each kind of work, twice around: each one's better time."""
    tried: Figures = {kind: [one | {"seconds": float("inf")} for one in CANDIDATES[kind]] for kind in CANDIDATES}
    with theirs(setup) as their:
        for _ in range(2):
            for kind, candidates in CANDIDATES.items():
                for place, one in enumerate(candidates):
                    seconds = their.ask(kind, name=f"tune_{kind}", **one)["seconds"]
                    tried[kind][place]["seconds"] = min(tried[kind][place]["seconds"], seconds)
    return {"tune": tried}


def _best(runs: Figures) -> Figures:
    """The fastest settings of each kind; the first of the list before anything was tried."""
    found = {}
    for kind, candidates in CANDIDATES.items():
        tried = runs.get("tune", {}).get(kind)
        found[kind] = dict(min(tried, key=lambda one: one["seconds"])) if tried else dict(candidates[0])
        found[kind].pop("seconds", None)
    return found


def _speed(setup: dict[str, Any], names: list[str], runs: Figures) -> None:
    """Interleaved rounds after one that warms up, added to what the day already has; each round is kept as it ends."""
    best = _best(runs)
    with ours(setup) as our, theirs(setup) as their:
        for name in names:
            ask(our, name, best)
        kind = names[0].partition("_")[0]
        their.ask(kind, name=f"tune_{kind}", **best[kind])
        for _ in range(ROUNDS):
            round_ = {name: {worker.name: ask(worker, name, best) for worker in (our, their)} for name in names}
            for name, sides in round_.items():
                for side, figures in sides.items():
                    runs.setdefault(name, {}).setdefault(side, []).append(figures)
            _written(runs)


def _memory(setup: dict[str, Any], runs: Figures) -> None:
    """Peaks of fresh processes; ours also with layers computed again."""
    best = _best(runs)
    sides = {"ours": (ours, {}), "ours_recompute": (ours, {"recompute": True}), "trl": (theirs, {})}
    for name in ("grpo_512", "grpo_128", "grpo_task"):
        found = {}
        for side, (start, more) in sides.items():
            with start(setup | more) as worker:
                found[side] = ask(worker, name, best) | {"loaded_mb": worker.loaded_mb}
        runs[f"memory_{name}"] = found
        _written(runs)


def _result(runs: Figures) -> dict[str, float]:
    def seconds(name: str, side: str) -> float:
        return median(float(run["seconds"]) for run in runs[name][side])

    result: dict[str, float] = {}
    for name in runs:
        if name.startswith("sft_"):
            result[f"sft_ratio_trl_{name[4:]}"] = seconds(name, "trl") / seconds(name, "ours")
            result[f"sft_examples_s_{name[4:]}"] = runs[name]["ours"][0]["examples"] / seconds(name, "ours")
        elif name.startswith("grpo_"):
            result[f"grpo_step_ratio_trl_{name[5:]}"] = seconds(name, "trl") / seconds(name, "ours")
            result[f"grpo_step_s_{name[5:]}"] = seconds(name, "ours")
    peaks = {name.removeprefix("memory_grpo_"): sides for name, sides in runs.items() if name.startswith("memory_")}
    for name, sides in peaks.items():
        result[f"grpo_memory_ratio_trl_{name}"] = sides["ours"]["peak_mb"] / sides["trl"]["peak_mb"]
        result[f"grpo_memory_recompute_ratio_{name}"] = sides["ours_recompute"]["peak_mb"] / sides["ours"]["peak_mb"]
    if peaks:
        result["grpo_memory_ratio_trl"] = max(result[f"grpo_memory_ratio_trl_{name}"] for name in peaks)
    if "parity" in runs:
        for what in ("loss_gap", "gradient_gap", "gradient_relative"):
            result[f"parity_{what}_max"] = max(found[what] for found in runs["parity"].values())
    return result


def _table(known: Figures) -> Table:
    runs = known["runs"]
    table = Table(title="one piece of work, medians", title_justify="left", box=None)
    for heading in ("", "ours s", "TRL s", "ratio", "ours peak MB", "TRL peak MB"):
        table.add_column(heading, justify="right" if heading else "left")
    for name in [name for names in SPEED.values() for name in names if name in runs]:
        times = [median(run["seconds"] for run in runs[name][side]) for side in ("ours", "trl")]
        peaks = runs.get(f"memory_{name}", {})
        shown = [f"{peaks[side]['peak_mb']:,.0f}" if side in peaks else "" for side in ("ours", "trl")]
        table.add_row(name, *(f"{value:.2f}" for value in times), f"{times[1] / times[0]:.1f}", *shown)
    return table


def _written(runs: Figures) -> Figures:
    """All figures, to the day's file."""
    cpu = next(
        line.partition(":")[2].strip()
        for line in Path("/proc/cpuinfo").read_text().splitlines()
        if "model name" in line
    )
    document = {
        "date": datetime.now(UTC).isoformat(timespec="seconds"),
        "machine": {"cpu": cpu, "cores": os.cpu_count(), "python": platform.python_version(), "dtype": DTYPE},
        "versions": {"ours": _versions(ROOT / ".venv"), "trl": _versions(ROOT / ".bench" / "trl")},
        "settings": {"rounds": ROUNDS, "trl": _best(runs)},
        "result": _result(runs),
        "runs": runs,
    }
    RESULT.write_text(json.dumps(document, indent=1) + "\n")
    return document


def _versions(venv: Path) -> dict[str, str]:
    said = (
        "import json, importlib.metadata as m\n"
        "def v(n):\n  try: return m.version(n)\n  except m.PackageNotFoundError: return None\n"
        "print(json.dumps({n: v(n) for n in ('trl', 'torch', 'transformers', 'peft', 'accelerate') if v(n)}))"
    )
    python = venv / "bin" / "python"
    found: dict[str, str] = json.loads(subprocess.run([python, "-c", said], check=True, capture_output=True).stdout)
    return found


if __name__ == "__main__":
    main(sys.argv[1:])
