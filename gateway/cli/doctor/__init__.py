"""Owns `stepdown doctor`: looks and says what to do. Must change nothing but make the home folder."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from dataclasses import asdict

import typer

from gateway.cli.doctor import engines, machine, projects
from gateway.cli.doctor.finding import Finding

_CHECKS: tuple[Callable[[], Iterator[Finding]], ...] = (
    machine.machine,
    machine.open_files,
    machine.home,
    engines.engines,
    engines.port,
    engines.redis_server,
    engines.writer,
    machine.learning,
    projects.in_database,
)


def examine(as_json: bool = False) -> int:
    """Prints a line for each finding, or all as one JSON object; 0 when nothing is wrong, else 1."""
    findings = []
    for check in _CHECKS:
        for finding in check():
            findings.append(finding)
            if not as_json:
                typer.echo(str(finding))
    fine = all(finding.state != "wrong" for finding in findings)
    if as_json:
        typer.echo(json.dumps({"ok": fine, "findings": [asdict(finding) for finding in findings]}, indent=1))
    return 0 if fine else 1
