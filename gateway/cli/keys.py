"""Owns `stepdown keys`: what an app authenticates with."""

from __future__ import annotations

from typing import Annotated

import typer

from gateway.cli.api import call, project_id
from gateway.core.errors import StepdownError

app = typer.Typer(help="Gateway keys: what an app sends as its API key.", no_args_is_help=True)
Project = Annotated[str, typer.Option("--project", "-p", help="Name of the project.")]


@app.command()
def create(
    name: Annotated[str, typer.Option("--name", "-n", help="What the key is for.")] = "cli",
    project: Project = "default",
    max_concurrent: Annotated[
        int | None, typer.Option("--max-concurrent", min=1, help="Calls under way at once; any number by default.")
    ] = None,
) -> None:
    """Make a key. It is printed once, alone on standard output, and never again."""
    wish = {"name": name, "max_concurrent": max_concurrent}
    made = call("POST", f"/api/projects/{project_id(project)}/keys", wish)
    typer.echo(f"Key {name!r} of project {project!r}; it is not shown again:", err=True)
    typer.echo(made["key"])


@app.command("list")
def list_keys(project: Project = "default") -> None:
    """List the keys of a project."""
    keys = call("GET", f"/api/projects/{project_id(project)}/keys")
    if not keys:
        hint = "`stepdown keys create` makes one, --project looks elsewhere"
        typer.echo(f"Project {project!r} has no keys: {hint}.", err=True)
    for key in keys:
        state = f"revoked {key['revoked_at'][:10]}" if key["revoked_at"] else "active"
        most = f"  (at most {key['max_concurrent']} calls at once)" if key["max_concurrent"] else ""
        typer.echo(f"{key['id']}  {key['prefix']}…  {state:<18} {key['name']}{most}")


@app.command()
def revoke(key: Annotated[str, typer.Argument(help="Its id or beginning.")], project: Project = "default") -> None:
    """Refuse a key from now on."""
    project_uuid = project_id(project)
    keys = call("GET", f"/api/projects/{project_uuid}/keys")
    found = [each for each in keys if key == each["id"] or key.startswith(each["prefix"])]
    if len(found) != 1:
        many = f"{len(found)} keys have" if found else "no key has"
        raise StepdownError(
            404,
            "key_not_found",
            f"In project {project!r} {many} the id or prefix {key!r}.",
            hint="`stepdown keys list` shows them, --project looks elsewhere.",
        )
    call("DELETE", f"/api/projects/{project_uuid}/keys/{found[0]['id']}")
    typer.echo(f"Key {found[0]['prefix']}… is revoked.")
