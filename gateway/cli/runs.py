"""Owns `stepdown run`: looking at what a run learned from."""

from __future__ import annotations

from typing import Annotated, Any

import typer

from gateway.cli.api import call
from gateway.core.errors import StepdownError

app = typer.Typer(help="Training runs.", no_args_is_help=True)
OPEN, CLOSE = "\u27e6", "\u27e7"
"""Around what is trained: colours are not everywhere, nor for everybody."""


@app.command()
def inspect(
    run: Annotated[str, typer.Argument(help="Its id or beginning, or `latest`.")] = "latest",
    phase: Annotated[str | None, typer.Option(help="sft, sft_all or grpo; by default the latest.")] = None,
    step: Annotated[int | None, typer.Option(help="By default the phase's latest that was kept.")] = None,
    project: Annotated[str | None, typer.Option("--project", "-p", help="Name of the project; default: any.")] = None,
    logprobs: Annotated[bool, typer.Option("--logprobs", help="Each trained token with its log-prob.")] = False,
) -> None:
    """Show the very tokens that a run learned from: what is trained is green, underlined and in ⟦ ⟧."""
    path, found = _find(run, project)
    query = "&".join(f"{name}={value}" for name, value in (("phase", phase), ("step", step)) if value is not None)
    shown = call("GET", f"{path}/tokens" + (f"?{query}" if query else ""))
    if not shown["sequences"]:
        known = "; ".join(f"{one['phase']}: {', '.join(map(str, one['steps']))}" for one in shown["phases"])
        hint = f"Steps that were kept: {known}." if known else "They appear with the first step of the warm start."
        raise StepdownError(404, "no_tokens", f"Run {found['id']} has no tokens to show there.", hint=hint)
    typer.echo(f"Run {found['id']} of {found['task']['name']}, {shown['phase']} step {shown['step']}")
    for sequence in shown["sequences"]:
        typer.echo(f"\n{_headline(sequence)}")
        if sequence["left_out"]:
            typer.echo(f"… {sequence['left_out']} tokens before these are not shown")
        typer.echo(_painted(sequence["tokens"]))
        if logprobs:
            for token in sequence["tokens"]:
                if token["trained"]:
                    value = "" if token["logprob"] is None else f"{token['logprob']:9.4f}"
                    typer.echo(f"{token['id']:>8}  {value}  {token['text']!r}")


def _find(run: str, project: str | None) -> tuple[str, dict[str, Any]]:
    """The run's path and row. Raises StepdownError where none or several fit."""
    found: list[tuple[str, dict[str, Any]]] = []
    for each in call("GET", "/api/projects"):
        if project is None or project in (each["name"], each["id"]):
            base = f"/api/projects/{each['id']}/runs"
            found += [(f"{base}/{row['id']}", row) for row in call("GET", base)]
    found.sort(key=lambda one: str(one[1]["created_at"]), reverse=True)
    fitting = found[:1] if run == "latest" else [one for one in found if one[1]["id"].startswith(run)]
    if len(fitting) != 1:
        known = ", ".join(row["id"] for _, row in found[:5]) or "none yet"
        many = f"{len(fitting)} runs begin" if fitting else "no run begins"
        raise StepdownError(404, "run_not_found", f"There {many} with {run!r}.", hint=f"The latest: {known}.")
    return fitting[0]


def _headline(sequence: dict[str, Any]) -> str:
    trained = sum(token["trained"] for token in sequence["tokens"])
    parts = [f"#{sequence['index']}", f"{len(sequence['tokens']) + sequence['left_out']} tokens, {trained} trained"]
    if sequence["group"] is not None:
        parts.append(f"group {sequence['group']}")
    for name in ("reward", "advantage"):
        if sequence[name] is not None:
            parts.append(f"{name} {sequence[name]:+.3f}")
    return typer.style(" · ".join(parts), bold=True)


def _painted(tokens: list[dict[str, Any]]) -> str:
    """The text; special tokens in reverse, what is trained in green, underlined and in brackets."""
    pieces, inside = [], False
    for token in tokens:
        if token["trained"] != inside:
            pieces.append(OPEN if token["trained"] else CLOSE)
            inside = token["trained"]
        colour = "green" if token["trained"] else None
        text = typer.style(token["text"], fg=colour, underline=token["trained"], reverse=token["special"])
        pieces.append(text)
    return "".join([*pieces, CLOSE] if inside else pieces)
