"""The report from findings worked out by hand: names, figures, and what is said when the release is refused."""

import io
import json
import re
from pathlib import Path
from typing import Any

import pytest
from rich.console import Console

from demo import app, grammar, report, tables
from demo.report import Findings
from demo.settings import Settings, Upstream
from demo.stages import Scored, Takeover

N = 10


GATE = {"bars": [{"name": "judged", "reason": "judged win rate is 0.55 [0.52, 0.58]; its lower end reaches 0.450."}]}


def answer(seconds: float, served_by: str, text: str = "{}") -> app.Answer:
    return app.Answer(
        app.Message("t", "x", False), text, None, seconds, None, served_by, "frontier-large", 150, 20
    )  # fmt: skip


def candidate(win_rate: float) -> dict[str, Any]:
    return {
        "n": N,
        "agreement": {"value": 0.7, "low": 0.4, "high": 0.9},
        "judged": {"win_rate": win_rate, "low": win_rate - 0.1, "high": win_rate + 0.1, "wins": 3, "ties": 6},
    }


def findings(*, refused: bool = False) -> Findings:
    tickets = grammar.generate(N, 1)
    truths = [ticket.truth for ticket in tickets]
    good = [grammar.answer(truth) for truth in truths]
    outputs = {
        "teacher": good[:8] + ["{}"] * 2,
        "base": ["no idea"] * N,
        "sft": good[:6] + ["{}"] * 4,
        "sft_all": good[:7] + ["{}"] * 3,
        "grpo": ["{}", *good[1:]],
    }
    hits = {name: [text in good for text in texts] for name, texts in outputs.items()}
    names = ("base", "sft", "sft_all", "grpo")
    stand_in = Upstream("frontier-large (stand-in)", "frontier-large", None, "k", None, "terms")
    first, second = {"number": 1, "stage": "observe"}, {"number": 2, "stage": "live"}
    phases = [{"name": "sft", "step": 40, "tokens": 9000}, {"name": "grpo", "step": 30, "tokens": 80000}]
    found = Findings(
        Settings(live_calls=N),
        stand_in,
        {"input": "2.50", "cached_input": "0.25", "output": "15.00"},
        project="demo",
        taught=[answer(0.7, "upstream:x")] * 100,
        run={"id": "r", "phases": phases, "config": {}, "judge_spend": "0.4"},
        evaluation={"id": "e", "winner": "grpo", "gate": GATE, "candidates": dict.fromkeys(names, candidate(0.55))},
        scored=Scored(outputs, hits, truths),
        takeover=Takeover("below the bar", first, first) if refused else Takeover(None, first, second, "s"),
        stages={"run": 120.0},
        phases={"sft": 60.0, "grpo": 60.0},
    )
    if not refused:
        found.live = [answer(0.2, "student:triage-v1", text) for text in outputs["grpo"]]
        found.live_tickets = tickets
        found.alone = [answer(0.1, "student:triage-v1")] * 5
        found.per_second = 20.0
        found.other_prompt = "upstream:x"
    return found


def test_figures() -> None:
    built = report.build(findings())
    assert built["accuracy"] == {"teacher": 0.8, "base": 0.0, "sft": 0.6, "sft_all": 0.7, "grpo": 0.9}
    assert set(built["accuracy_intervals"]) == set(built["accuracy"])
    assert built["accuracy_intervals"]["teacher"]["low"] == pytest.approx(0.4902, abs=1e-4)
    # grpo is wrong on the first message alone, the warm start on the last four alone: 1 against 4.
    assert built["paired"]["grpo_vs_sft"] == {
        "first_only": 4, "second_only": 1, "n": 10, "difference": pytest.approx(0.3), "p": pytest.approx(0.375),
    }  # fmt: skip
    assert set(built["paired"]) == {"grpo_vs_sft", "grpo_vs_sft_all", "grpo_vs_teacher"}
    assert built["win_rate"]["grpo"]["win_rate"] == 0.55
    assert built["win_rate"]["teacher"]["win_rate"] == 0.5
    assert set(built["agreement"]) == set(built["accuracy"])
    assert built["latency"]["teacher"]["p50_ms"] == 700
    assert built["latency"]["student"]["p95_ms"] == 200
    # 150 tokens in and 20 out a call: 0.375 + 0.3 USD per 1,000. 20 calls a second at 0.10 USD an hour: 0.0014.
    assert built["cost_per_1000_calls_usd"] == {"teacher": "0.6750", "student": "0.0014"}
    assert built["steps"] == {"sft": 40, "grpo": 30}
    assert built["minutes"]["run"] == 2
    assert (built["route"]["before"]["number"], built["route"]["after"]["number"]) == (1, 2)
    assert built["live"]["by_student"] == N
    assert built["live"]["accuracy"]["right"] == 9
    assert built["gate"]["released"]
    assert any("stand-in" in line for line in built["assumptions"])
    assert built["versions"]["python"].startswith("3.")
    assert built["machine"]["cores"] >= 1


def test_a_refused_release_is_said() -> None:
    built = report.build(findings(refused=True))
    assert built["gate"]["released"] is False
    assert built["gate"]["refusal"] == "below the bar"
    assert built["live"] is None
    assert "student" not in built["latency"]
    assert built["cost_per_1000_calls_usd"]["student"] is None
    assert "Not released" in printed(built)
    assert "below the bar" in printed(built)


def test_unknown_prices_are_said_and_cost_nothing_invented() -> None:
    found = findings()
    found.prices = None
    built = report.build(found)
    assert built["cost_per_1000_calls_usd"]["teacher"] is None
    assert any("unknown" in line for line in built["assumptions"])


def test_the_bill_and_a_rival_that_is_the_warm_start_are_said() -> None:
    built = report.build(findings())
    assert not built["rival_is_warm_start"]
    built["run"]["judge_spend"] = "3.43"
    # 3.43 USD at 0.6750 − 0.0014 USD saved per 1,000 calls
    assert "The judge cost 3.43 USD: what 5,092 calls save." in printed(built)
    found = findings()
    assert found.scored is not None
    found.scored.outputs["sft_all"] = found.scored.outputs["sft"]
    assert "it is the same" in printed(report.build(found))


def printed(built: dict[str, Any]) -> str:
    console = Console(record=True, width=140, file=io.StringIO())
    tables.show(built, console)
    return console.export_text()


def test_what_is_printed_is_what_is_written(tmp_path: Path) -> None:
    built = report.build(findings())
    path = report.write(built, tmp_path)
    assert path.name == "demo-report.json"
    assert json.loads(path.read_text())["accuracy"] == built["accuracy"]
    assert [child.name for child in tmp_path.iterdir()] == ["demo-report.json"]
    text = printed(json.loads(path.read_text()))
    assert "scripted stand-in" in text
    for name, share in built["accuracy_intervals"].items():
        row = next(line for line in text.splitlines() if tables.NAMES[name] in line and "[" in line)
        assert f"{100 * share['value']:.1f} %" in row
    assert GATE["bars"][0]["reason"][:40] in text
    assert re.search(r"revision 1 \(observe\) → 2 \(live\)", text)
