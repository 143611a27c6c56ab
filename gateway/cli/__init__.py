"""The `stepdown` command. Speaks to the HTTP API, except `up`, `serve`, `db` and `doctor`; must hold no rule."""

from __future__ import annotations

import sys
from typing import Annotated

import typer

from gateway.cli import keys, running, runs
from gateway.core.errors import StepdownError

app = typer.Typer(
    name="stepdown",
    help="An OpenAI-compatible gateway that teaches a small model the job of a large one.",
    no_args_is_help=True,
    add_completion=False,
    pretty_exceptions_enable=False,
)
app.command()(running.up)
app.command()(running.status)
app.command()(running.down)
app.command()(running.serve)
app.add_typer(keys.app, name="keys")
app.add_typer(runs.app, name="run")

_db = typer.Typer(help="The database.", no_args_is_help=True)
app.add_typer(_db, name="db")


@_db.command()
def migrate() -> None:
    """Bring the database to the newest schema (DATABASE_URL, or the embedded one while it runs)."""
    from sqlalchemy.exc import OperationalError

    from gateway.core.migrate import upgrade_head

    try:
        upgrade_head()
    except OperationalError as error:
        why = " ".join(str(error.orig).split())
        raise StepdownError(
            503, "database_unavailable", f"PostgreSQL does not answer: {why}", hint="Is it running? `stepdown status`"
        ) from error
    typer.echo("The database has the newest schema.")


@app.command()
def doctor(
    as_json: Annotated[bool, typer.Option("--json", help="One JSON object instead of lines.")] = False,
) -> None:
    """Look at this machine and what runs here, and say what to do about each thing that is wrong: exit status 1."""
    from gateway.cli.doctor import examine

    raise typer.Exit(examine(as_json))


def main() -> None:
    """Runs a command; a failure becomes one line that says what to do, and exit status 1."""
    try:
        app()
    except StepdownError as error:
        print(f"stepdown: {error}", file=sys.stderr)
        raise SystemExit(1) from None
