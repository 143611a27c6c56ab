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
    pass_through: Annotated[
        str | None, typer.Option("--pass-through", help="Name of an upstream: callers bring their own key for it.")
    ] = None,
    capture: Annotated[str, typer.Option("--capture", help="full, metadata or off.")] = "full",
    sample: Annotated[
        float, typer.Option("--sample", min=0, max=1, help="Share of conversations captured in full.")
    ] = 1.0,
    redact: Annotated[
        list[str] | None, typer.Option("--redact", help="A rule by name, as email; may be given several times.")
    ] = None,
) -> None:
    """Make a key. It is printed once, alone on standard output, and never again."""
    project_uuid = project_id(project)
    wish = {
        "name": name,
        "max_concurrent": max_concurrent,
        "capture": capture,
        "sample": sample,
        "redact": [{"name": rule} for rule in redact or ()],
        "upstream_id": _upstream(project_uuid, pass_through) if pass_through else None,
    }
    made = call("POST", f"/api/projects/{project_uuid}/keys", wish)
    typer.echo(f"Key {name!r} of project {project!r}; it is not shown again:", err=True)
    typer.echo(made["key"])


def _upstream(project_uuid: str, name: str) -> str:
    upstreams = call("GET", f"/api/projects/{project_uuid}/upstreams")
    found = [each["id"] for each in upstreams if each["name"] == name]
    if not found:
        known = ", ".join(each["name"] for each in upstreams) or "none yet"
        raise StepdownError(404, "upstream_not_found", f"There is no upstream {name!r}.", hint=f"Known: {known}.")
    return str(found[0])


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
        kind = "  (pass-through)" if key["upstream_id"] else ""
        typer.echo(f"{key['id']}  {key['prefix']}…  {state:<18} {key['name']}{most}{kind}")


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
