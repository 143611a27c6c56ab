"""The architecture is a test: layers, who may import what, where SQL and commits live, how long things may grow."""

from __future__ import annotations

import ast
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from alembic.script import ScriptDirectory

ROOT = Path(__file__).parents[1]
PACKAGES = ("gateway", "rl", "distill", "demo", "migrations", "bench")
FILES = sorted(path for package in PACKAGES for path in (ROOT / package).rglob("*.py"))
TREES = {path: ast.parse(path.read_text()) for path in FILES}
DOMAINS = {
    "billing",
    "capture",
    "datasets",
    "evaluations",
    "keys",
    "labels",
    "limits",
    "routing",
    "rubrics",
    "runs",
    "students",
    "tasks",
}
# What builds SQL. `func` alone builds a fragment, but nobody needs one without the rest.
STATEMENTS = {"select", "insert", "update", "delete", "text", "func", "exists", "union_all"}
# A lock around migrations is no query on our data; tables may use `text` and `func` in their definitions.
NO_REPOSITORY_NEEDED = {"gateway/core/migrate.py"}
TRAINING_LOOPS = {"train", "step", "run"}


def name(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def imported(tree: ast.AST) -> Iterator[tuple[str, str]]:
    """(module, name) of every import, wherever it stands."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from ((alias.name, "") for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield from ((node.module, alias.name) for alias in node.names)


def test_import_contracts_hold() -> None:
    command = [str(Path(sys.executable).with_name("lint-imports")), "--no-cache"]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stdout + done.stderr


@pytest.mark.parametrize(
    ("library", "homes"),
    [
        ("litellm", ("gateway/providers/",)),
        ("openai", ("gateway/providers/", "demo/")),
        ("torch", ("rl/", "distill/sft", "distill/serving", "distill/artifacts", "bench/train/")),
        ("transformers", ("rl/", "distill/sft", "distill/serving", "distill/artifacts", "bench/train/")),
        ("peft", ("rl/", "distill/sft", "distill/serving", "distill/artifacts", "bench/train/")),
        ("vllm", ("rl/", "distill/sft", "distill/serving", "distill/artifacts")),
    ],
)
def test_a_library_is_imported_only_at_home_not_even_lazily(library: str, homes: tuple[str, ...]) -> None:
    strangers = {
        name(path)
        for path, tree in TREES.items()
        if any(module.split(".")[0] == library for module, _ in imported(tree)) and not name(path).startswith(homes)
    }
    assert not strangers


def test_sql_lives_in_repositories() -> None:
    strangers = {
        name(path)
        for path, tree in TREES.items()
        if "repository" not in name(path)
        and not name(path).startswith(("gateway/models/", "migrations/"))
        and any(module.split(".")[0] == "sqlalchemy" and what in STATEMENTS for module, what in imported(tree))
    }
    assert strangers <= NO_REPOSITORY_NEEDED


def test_domains_do_not_commit() -> None:
    guilty = set()
    for path, tree in TREES.items():
        parts = path.relative_to(ROOT).parts
        if parts[0] != "gateway" or parts[1] not in DOMAINS or path.name in ("writer.py", "__main__.py"):
            continue
        calls = [node.func.attr for node in ast.walk(tree) if isinstance(node, ast.Call) and hasattr(node.func, "attr")]
        if "commit" in calls or any(what == "session_scope" for _, what in imported(tree)):
            guilty.add(name(path))
    assert not guilty


def test_nothing_is_pickled() -> None:
    assert not {
        name(path) for path, tree in TREES.items() if {"pickle", "dill", "cloudpickle"} & {m for m, _ in imported(tree)}
    }


def test_no_file_is_longer_than_400_lines() -> None:
    tests = sorted((ROOT / "tests").rglob("*.py"))
    long = {name(path): n for path in [*FILES, *tests] if (n := len(path.read_text().splitlines())) > 400}
    assert not {path for path in long if not path.startswith("migrations/versions/")}


def test_no_function_is_longer_than_60_lines() -> None:
    long = {}
    for path, tree in TREES.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                lines = (node.end_lineno or 0) - node.lineno + 1
                limit = 120 if node.name in TRAINING_LOOPS and path.parts[-2] in ("rl", "distill", "phases") else 60
                if lines > limit and not name(path).startswith("migrations/versions/"):
                    long[f"{name(path)}:{node.name}"] = lines
    assert not long


def test_every_module_says_what_it_owns() -> None:
    silent = {name(p) for p, tree in TREES.items() if not ast.get_docstring(tree) and p.read_text().strip()}
    assert not silent


def test_migrations_are_one_line() -> None:
    """Two migrations after the same one: whichever came second would stop every installation."""
    assert len(ScriptDirectory(str(ROOT / "migrations")).get_heads()) == 1
