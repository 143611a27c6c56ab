"""Owns what the supervisor must know of a thing it runs. Must not start anything itself."""

from __future__ import annotations

import http.client
import signal
import sys
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, Protocol

from gateway.core.processes import Launch


class Service(Protocol):
    """Something that runs as one process (and its descendants)."""

    name: str
    stop_signal: signal.Signals
    grace_s: float
    engine: bool  # holds data that others connect to: stopped last, with all the time it needs

    @property
    def url(self) -> str | None:
        """Where it answers, for people: without secrets."""

    def prepare(self) -> Launch:
        """How to start it now. May raise StepdownError, which counts as a death."""

    def probe(self) -> bool:
        """Whether it is ready. Asked a few times a second while it starts: must return within a second or two."""


@dataclass(frozen=True)
class Policy:
    """When to start a service again, and when to give up."""

    once: bool = False  # runs to its end, and exit 0 is what we want
    give_up: Literal["never", "before_ready", "always"] = "never"
    deaths: int = 5  # quick deaths in a row after which it is given up
    quick_s: float = 10.0  # a death sooner than this after the start is quick
    ready_text: str = ""  # what it writes to its log once it is ready, where `probe` cannot know
    first_delay_s: float = 0.5  # doubles with each quick death
    longest_delay_s: float = 30.0

    def delay_s(self, deaths: int) -> float:
        return float(min(self.longest_delay_s, self.first_delay_s * 2 ** (deaths - 1)))


Stage = list[tuple[Service, Policy]]


@dataclass
class Command:
    """A service that is ready as soon as it runs."""

    name: str
    argv: list[str]
    env: Mapping[str, str] = field(default_factory=dict)
    stop_signal: signal.Signals = signal.SIGTERM
    grace_s: float = 10.0
    engine: bool = False
    nice: int = 0  # how far it steps back when others want the processor; its descendants do too

    @property
    def url(self) -> str | None:
        return None

    def prepare(self) -> Launch:
        return Launch(["nice", "-n", str(self.nice), *self.argv] if self.nice else self.argv, self.env)

    def probe(self) -> bool:
        return True


@dataclass
class HttpCommand(Command):
    """A service that is ready when `path` answers 200 on host and port."""

    host: str = "127.0.0.1"
    port: int = 0
    path: str = "/healthz"

    @property
    def url(self) -> str | None:
        return address(self.host, self.port)

    def probe(self) -> bool:
        connection = http.client.HTTPConnection(reachable(self.host), self.port, timeout=1)
        try:
            connection.request("GET", self.path)
            return connection.getresponse().status == 200
        except (OSError, http.client.HTTPException):
            return False
        finally:
            connection.close()


def python(*arguments: str) -> list[str]:
    """This interpreter, without the working directory on its module path: a user's folder must not shadow ours."""
    return [sys.executable, "-P", *arguments]


def reachable(host: str) -> str:
    """The address under which a server bound to `host` answers on this machine."""
    return {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)  # noqa: S104 (nothing is bound here)


def address(host: str, port: int) -> str:
    """The URL of a server bound to `host`, as a browser on this machine needs it."""
    name = reachable(host)
    return f"http://[{name}]:{port}" if ":" in name else f"http://{name}:{port}"
