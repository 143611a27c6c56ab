"""Owns the doctor's look at what is in the database: schema, credentials, upstreams, routes, projects."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Literal
from urllib.parse import urlsplit, urlunsplit

import httpx
import psycopg
from sqlalchemy.exc import SQLAlchemyError
from sqlalchemy.orm import Session

from gateway.cli.doctor import repository
from gateway.cli.doctor.engines import running
from gateway.cli.doctor.finding import Finding, judged
from gateway.cli.doctor.repository import Named, Provider
from gateway.core.db import session_scope
from gateway.core.endpoints import database_url
from gateway.core.errors import StepdownError
from gateway.core.migrate import current_and_newest
from gateway.core.secretbox import key_path, unseal
from gateway.core.settings import settings
from gateway.proxy.headers import ClientHeaders

ANSWER_S = 5.0
"""Seconds that the database and each upstream have to answer in."""
_OLDEST = 150000
_AT_ONCE = 16
_AZURE_VERSION = "api-version=2024-10-21"
_WHERE = "under Keys & upstreams in the dashboard"
_Sealed = list[tuple[Provider, str]]


def in_database() -> Iterator[Finding]:
    """All that only the database knows; where it should answer and does not, that."""
    if not settings().database_url and running() is None:
        what = "Stepdown does not run here: schema, credentials, upstreams and routes were not looked at"
        yield Finding("database", "note", what, "`stepdown up`, then ask again")
        return
    try:
        with psycopg.connect(database_url(), connect_timeout=int(ANSWER_S)):
            pass
        with session_scope() as session:
            yield from _server(session)
            current, newest = current_and_newest()
            do = "`stepdown db migrate`"
            what = f"the database's schema is {current or 'none'}, ours {newest}"
            yield judged("schema", current == newest, what, do)
            if current != newest:
                return
            providers = repository.providers(session)
            named = repository.named_students(session)
            lacking = repository.projects_lacking(session)
    except (psycopg.Error, SQLAlchemyError, StepdownError) as error:
        why = " ".join(str(error).split())[:200]
        yield Finding("database", "wrong", f"PostgreSQL does not answer ({why})", "start it, or correct DATABASE_URL")
        return
    usable: _Sealed = []
    yield from _credentials(providers, usable)
    with ThreadPoolExecutor(_AT_ONCE) as pool:
        yield from pool.map(lambda pair: _asked(*pair), usable)
    yield from _routes(named)
    yield from _projects(lacking)


def _server(session: Session) -> Iterator[Finding]:
    version = repository.server_version(session)
    what = f"PostgreSQL {version // 10000}.{version % 10000} answers"
    yield judged("database", version >= _OLDEST, what, "15 is the oldest that will do")


def _credentials(providers: Sequence[Provider], usable: _Sealed) -> Iterator[Finding]:
    """Whether each credential can be unsealed; those that can are added to `usable`."""
    path = key_path()
    sealed = [provider for provider in providers if provider.credential]
    if sealed and not path.exists():
        what = f"the master key {path} is gone, and {len(sealed)} credentials were sealed with it"
        yield Finding("master_key", "wrong", what, f"put it back from your backup, or enter them again {_WHERE}")
        return
    if path.exists() and path.stat().st_mode & 0o077:
        what = f"the master key {path} has mode {path.stat().st_mode & 0o777:04o}"
        yield Finding("master_key", "wrong", what, f"others may read it: `chmod 600 {path}`")
    for provider in providers:
        try:
            usable.append((provider, unseal(provider.credential) if provider.credential else ""))
        except (StepdownError, OSError) as error:
            what = f"the credential of upstream {provider.name} ({provider.project}) cannot be read with {path}"
            do = f"enter it again {_WHERE}, or put the old key back ({type(error).__name__})"
            yield Finding("credential", "wrong", what, do)
    if sealed and len(usable) == len(providers):
        yield Finding("master_key", "ok", f"the master key {path} opens all {len(sealed)} credentials")


def _asked(provider: Provider, api_key: str) -> Finding:
    """What an upstream says to being asked for its models."""
    who = f"upstream {provider.name} ({provider.project})"
    if not provider.base_url:
        known = provider.kind == "litellm"
        state = "note" if known else "wrong"
        do = "litellm knows its address: it was not asked" if known else f"enter it {_WHERE}"
        return Finding("upstream", state, f"{who} has no base URL", do)  # type: ignore[arg-type]
    url = _models_url(provider)
    headers = ClientHeaders([]).to_upstream(api_key, stream=True, kind=_wire(provider))
    try:
        with httpx.Client(timeout=ANSWER_S, trust_env=False) as client:
            status = client.get(url, headers=headers).status_code
    except (httpx.HTTPError, httpx.InvalidURL) as error:
        why = f"{str(error) or f'nothing for {ANSWER_S:g} s'} ({type(error).__name__})"
        do = "check its base URL, this machine's DNS and way out, and the provider's status page"
        return Finding(
            "upstream", "wrong", f"{who} cannot be asked at {_shown(url)}: {why} ({type(error).__name__})", do
        )
    return _told(f"{who} answers {status} at {_shown(url)}", status, bool(api_key))


def _told(what: str, status: int, authenticated: bool) -> Finding:
    if status == 200:
        return Finding("upstream", "ok", what)
    if status in (401, 403) and not authenticated:
        return Finding("upstream", "note", what, "it has no credential here; callers of pass-through bring their own")
    if status in (401, 403):
        return Finding("upstream", "wrong", what, f"it refuses the credential, enter a valid one {_WHERE}")
    if status == 429 or status >= 500:
        return Finding("upstream", "wrong", what, "it can be reached and does not serve now: see its status page")
    return Finding("upstream", "note", what, "it can be reached; whether it takes the credential cannot be told")


def _wire(provider: Provider) -> Literal["openai", "anthropic", "azure"]:
    return provider.kind if provider.kind in ("anthropic", "azure") else "openai"  # type: ignore[return-value]


def _models_url(provider: Provider) -> str:
    parts = urlsplit(provider.base_url or "")
    path, query = f"{parts.path.rstrip('/')}/models", parts.query
    if provider.kind == "azure":
        path, query = f"{parts.path.rstrip('/')}/openai/models", query or _AZURE_VERSION
    return urlunsplit((parts.scheme, parts.netloc, path, query, ""))


def _shown(url: str) -> str:
    """The address without what may be secret in it."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc.rpartition('@')[2]}{parts.path}"


def _routes(named: Sequence[Named]) -> Iterator[Finding]:
    for route in named:
        what = f"route {route.alias} ({route.project}) names student {route.student}"
        if route.wanted and route.state == "ready":
            yield Finding("route", "ok", f"{what}, which is loaded")
            continue
        state = "unloaded" if not route.wanted else f"{route.state}{f': {route.error}' if route.error else ''}"
        do = "the upstream answers meanwhile; load it on its task's page, or roll the route back"
        yield Finding("route", "wrong", f"{what}, which is {state}", do)


def _projects(lacking: Sequence[tuple[str, bool, bool]]) -> Iterator[Finding]:
    for name, has_key, has_route in lacking:
        if not has_key:
            do = f"`stepdown keys create --project {name}`"
            yield Finding("project", "note", f"project {name} has no key: nobody can call it", do)
        if not has_route:
            do = "add one under Routes in the dashboard"
            yield Finding("project", "note", f"project {name} has no route: its calls are refused", do)
