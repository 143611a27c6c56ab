"""The README is the manual: every setting, command, header, route and make target is in it."""

from __future__ import annotations

import re
from pathlib import Path

import typer.main

from gateway.admin.openapi import document
from gateway.cli import app
from gateway.core.settings import Settings
from gateway.runs.schemas import RunConfig

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text()


def missing(words: list[str]) -> list[str]:
    return [word for word in words if f"`{word}`" not in README]


def test_every_setting_is_documented() -> None:
    own_names = {"database_url": "DATABASE_URL", "redis_url": "REDIS_URL"}
    names = [own_names.get(name, f"STEPDOWN_{name.upper()}") for name in Settings.model_fields]
    assert len(names) > 10
    assert missing(names) == []


def test_every_setting_of_a_run_is_documented() -> None:
    assert "grpo_steps" in RunConfig.model_fields
    assert missing(list(RunConfig.model_fields)) == []


def test_settings_are_described_in_the_codes_own_words() -> None:
    fields = [*Settings.model_fields.items(), *RunConfig.model_fields.items()]
    assert [name for name, field in fields if f"| {field.description} |" not in README] == []


def test_every_setting_of_the_demo_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "demo").glob("*.py")]
    names = sorted({name for source in sources for name in re.findall(r"\bDEMO_[A-Z_]+[A-Z]\b", source)})
    assert "DEMO_CALLS" in names
    assert missing(names) == []


def test_every_command_is_documented() -> None:
    def walk(command: object, path: str) -> list[str]:
        children = getattr(command, "commands", None)
        if not children:
            return [path]
        return [name for key, child in children.items() for name in walk(child, f"{path} {key}")]

    commands = walk(typer.main.get_command(app), "stepdown")
    assert "stepdown db migrate" in commands
    assert missing(commands) == []


def test_every_header_is_documented() -> None:
    sources = [path.read_text() for path in (ROOT / "gateway").rglob("*.py")]
    headers = sorted({name for source in sources for name in re.findall(r'"(x-stepdown-[a-z-]*[a-z])"', source)})
    headers += sorted({name for source in sources for name in re.findall(r'b"(x-stepdown-[a-z-]*[a-z])"', source)})
    assert "x-stepdown-served-by" in headers
    assert missing(headers) == []


def test_every_route_is_documented() -> None:
    routes = [f"{method.upper()} {path}" for path, operations in document()["paths"].items() for method in operations]
    assert len(routes) > 20
    assert missing(routes) == []


def test_every_make_target_is_documented() -> None:
    targets = re.findall(r"^([a-z-]+):.*## ", (ROOT / "Makefile").read_text(), re.MULTILINE)
    assert "demo" in targets
    assert missing([f"make {target}" for target in targets if target != "help"]) == []


def test_no_package_registry_is_named() -> None:
    hosts = re.compile(r"pypi\.org|pythonhosted|registry\.npmjs|npmjs\.org|download\.pytorch|huggingface\.co/")
    files = [ROOT / name for name in ("README.md", "pyproject.toml", "constraints.txt", "web/package-lock.json")]
    assert [str(file) for file in files if hosts.search(file.read_text())] == []
