"""The demo's report as people read it in a terminal.

Owns words and layout; every figure is taken from the report as it stands.
"""

from collections.abc import Mapping
from typing import Any

from rich.console import Console, Group
from rich.markup import escape
from rich.panel import Panel
from rich.table import Table
from rich.text import Text

NAMES = {
    "teacher": "teacher",
    "base": "SmolLM2 as it comes",
    "sft": "warm start (short SFT)",
    "sft_all": "SFT on everything",
    "grpo": "GRPO with the teacher as judge",
}


def show(report: Mapping[str, Any], console: Console) -> None:
    """Prints the report."""
    console.rule("[bold]Report")
    if "stand-in" in report["teacher"]["what"]:
        console.print(f"[yellow]The teacher, {report['teacher']['model']}, is a scripted stand-in.[/]")
    console.print(_quality(report))
    for line in _paired_lines(report):
        console.print(line)
    if report["rival_is_warm_start"]:
        console.print("SFT on everything found no better checkpoint on validation than the warm start: it is the same.")
    console.print(_speed(report))
    console.print(_bill(report))
    console.print(_verdict(report))
    console.print(Text("\n".join(f"· {line}" for line in report["assumptions"]), style="dim"))
    console.print(Text(_effort(report), style="dim"))


def _quality(report: Mapping[str, Any]) -> Table:
    n = next(iter(report["accuracy_intervals"].values()))["n"]
    table = Table(title=f"Quality on the same {n} test messages (95 % intervals)", title_justify="left")
    for name in ("", "all fields right", "agrees with the teacher", "judged against the teacher"):
        table.add_column(name, justify="left" if not name else "right")
    for name, interval in report["accuracy_intervals"].items():
        table.add_row(
            NAMES[name],
            _interval(interval, "value"),
            "(itself)" if name == "teacher" else _interval(report["agreement"].get(name), "value"),
            "(itself)" if name == "teacher" else _interval(report["win_rate"].get(name), "win_rate"),
            style="bold" if name == report["gate"]["winner"] else "",
        )
    return table


def _interval(numbers: Mapping[str, Any] | None, key: str) -> str:
    if not numbers or numbers.get(key) is None:
        return "–"
    value, low, high = (100 * numbers[name] for name in (key, "low", "high"))
    return f"{value:.1f} %  [{low:.1f}, {high:.1f}]"


def _paired_lines(report: Mapping[str, Any]) -> list[str]:
    lines = []
    for pair, test in report["paired"].items():
        first, second = (NAMES[name] for name in pair.split("_vs_"))
        lines.append(
            f"{first} against {second}: {100 * test['difference']:+.1f} points; alone right {test['first_only']} : "
            f"{test['second_only']} (McNemar, exact p = {test['p']:.2g})"
        )
    return lines


def _speed(report: Mapping[str, Any]) -> Table:
    latency, cost = report["latency"], report["cost_per_1000_calls_usd"]
    table = Table(title="Speed and cost", title_justify="left")
    for name in ("", "p50", "p95", "USD per 1,000 calls"):
        table.add_column(name, justify="left" if not name else "right")
    rows = {"teacher": "teacher", "student": "student", "student_one_at_a_time": "student"}
    for key, who in rows.items():
        if times := latency.get(key):
            name = f"{who}, {latency['threads'][key]} at a time"
            price = cost.get(key) or ("" if key not in cost else "unknown")
            table.add_row(name, f"{times['p50_ms']:.0f} ms", f"{times['p95_ms']:.0f} ms", price)
    return table


def _bill(report: Mapping[str, Any]) -> str:
    """What the judge cost beside what a call saves. Empty where the prices are unknown."""
    judge, cost = report["run"]["judge_spend"], report["cost_per_1000_calls_usd"]
    if judge is None or not float(judge):
        return ""
    line = f"The judge cost {float(judge):.2f} USD"
    if cost["teacher"] is None or cost["student"] is None:
        return f"{line}."
    calls = 1000 * float(judge) / (float(cost["teacher"]) - float(cost["student"]))
    return f"{line}: what {calls:,.0f} calls save."


def _verdict(report: Mapping[str, Any]) -> Panel:
    gate, route, live = report["gate"], report["route"], report["live"]
    if not gate["released"]:
        words = f"[bold red]Not released.[/] {gate['refusal']}\nThe teacher goes on answering, as before."
        return Panel(words, title="the bar declared before looking", title_align="left", border_style="red")
    lines = [
        *(escape(bar["reason"]) for bar in gate["verdict"]["bars"]),
        f"[bold green]Released.[/] Route revision {route['before']['number']} ({route['before']['stage']}) → "
        f"{route['after']['number']} ({route['after']['stage']}).",
        f"The same app, unchanged: {live['by_student']} of {live['sent']} calls answered by the student, "
        f"{live['failed']} failed; all fields right {_interval(live['accuracy'], 'value')} on new messages.",
        f"Another prompt under the same model name is answered by: {route['other_prompts']}.",
    ]
    title = "the bar declared before looking is cleared"
    return Panel(Group(*lines), title=title, title_align="left", border_style="green")


def _effort(report: Mapping[str, Any]) -> str:
    phases = ", ".join(f"{name} {minutes:.1f}" for name, minutes in report["minutes"]["phases"].items())
    total = sum(minutes for name, minutes in report["minutes"].items() if name != "phases")
    tokens = sum(report["tokens"]["trained"].values())
    steps = ", ".join(
        f"{count} {name}" for name, count in report["steps"].items() if name not in ("freeze", "evaluate")
    )
    machine = report["machine"]
    return (
        f"{total:.1f} minutes in all. Minutes by phase: {phases}. Steps: {steps}. Trained tokens: {tokens:,}.\n"
        f"{machine['cpu']}, {machine['cores']} cores, {machine['memory_gib']} GiB."
    )
