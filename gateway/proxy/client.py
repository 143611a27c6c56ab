"""Owns the connections to upstreams and engines: a pool, a limit for connecting, no retry of its own.

Must not change a body nor follow a redirect.
"""

from __future__ import annotations

import asyncio
import ssl
from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote, urlsplit

from gateway.core.errors import StepdownError
from gateway.proxy.headers import Headers
from gateway.proxy.http1 import Answer, CannotConnect, Connection, ConnectTimedOut, UpstreamError, head_of
from gateway.proxy.places import NoneFree, Origin, Places

_IN_PATHS = "%/:@!$&'()*+,;=~"  # escapes included: a path is passed on as it was sent
KEEP_S = 15.0
"""Seconds an idle connection is kept: servers close theirs after some more."""


@dataclass(frozen=True)
class Address:
    """Where a request goes. `authority` is the Host header, `target` the path with its query."""

    host: str
    port: int
    tls: bool
    authority: str
    target: str

    @property
    def origin(self) -> str:
        """The address without its path, for people."""
        return f"{'https' if self.tls else 'http'}://{self.authority}"


@lru_cache(maxsize=1024)
def endpoint(base_url: str, path: str, query: str) -> Address:
    """The address of `path` under a base URL (up to and including /v1). Without a host where the URL is none."""
    path = quote(path, safe=_IN_PATHS)
    try:
        parts = urlsplit(base_url)
        tls = parts.scheme == "https"
        host = (parts.hostname or "") if parts.scheme in ("http", "https") else ""
        port = parts.port or (443 if tls else 80)
    except ValueError:
        return Address("", 0, False, base_url, "")
    authority = parts.netloc.rpartition("@")[2]
    return Address(host, port, tls, authority, f"{parts.path.rstrip('/')}/{path}" + (f"?{query}" if query else ""))


_BY_DEPLOYMENT = ("chat", "completions", "embeddings", "images", "audio")


def azure_endpoint(base_url: str, deployment: str, path: str, query: str) -> Address:
    """The address of `path` at Azure's resource. The base URL may carry the `api-version` for clients that send none;
    one that ends with /v1 has no deployments in its paths."""
    base, _, own = base_url.partition("?")
    base = base.rstrip("/")
    if "api-version=" not in query and own:
        query = f"{query}&{own}" if query else own
    if base.endswith("/v1"):
        return endpoint(base, path, query)
    folder = "openai"
    if deployment and path.partition("/")[0] in _BY_DEPLOYMENT:
        folder = f"openai/deployments/{quote(deployment, safe='')}"
    return endpoint(base.removesuffix("/openai"), f"{folder}/{path}", query)


class UpstreamClient:
    """Sends a body somewhere and gives back the open answer, its body untouched as it came.

    Limits the time until there is a connection; who calls limits the rest. `most`: connections to one host and port
    at once, 0 for any number.
    """

    def __init__(self, connect_s: float, most: int = 0) -> None:
        self._connect_s = connect_s
        self._places = Places(most)
        self._idle: dict[Origin, list[Connection]] = {}
        self._origin_of: dict[Connection, Origin] = {}
        self._tls: ssl.SSLContext | None = None
        self._timer: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Begins to close connections that nobody uses; needs a running event loop."""
        self._timer = asyncio.get_running_loop().call_later(KEEP_S, self._sweep)

    async def close(self) -> None:
        """Closes every connection."""
        if self._timer is not None:
            self._timer.cancel()
        for connection in list(self._origin_of):
            connection.abort()

    async def ask(self, address: Address, headers: Headers, body: bytes, method: str = "POST") -> Answer:
        """Returns when the answer's head is there; the caller closes the answer. Raises UpstreamError."""
        try:
            length = len(body) if body or method == "POST" else None
            head = head_of(method, address.authority, address.target, headers, length)
        except ValueError as error:
            raise CannotConnect(f"the request cannot be sent: {error}") from error
        origin = (address.host, address.port, address.tls)
        connection = self._free(origin) or await self._connect(origin)
        return await connection.ask(head, body)

    def _free(self, origin: Origin) -> Connection | None:
        """The connection that was used last: the others may then grow old and be closed."""
        idle = self._idle.get(origin)
        while idle:
            connection = idle.pop()
            if connection.usable:
                return connection
        return None

    async def _connect(self, origin: Origin) -> Connection:
        host, _, tls = origin
        if not host:
            raise CannotConnect("its base URL is no http or https URL")
        if tls and self._tls is None:
            self._tls = ssl.create_default_context()
        queued = False
        try:
            async with asyncio.timeout(self._connect_s):
                while not self._places.take(origin):
                    queued = True
                    await self._places.freed(origin)
                    if (free := self._free(origin)) is not None:
                        return free
                queued = False
                return await self._open(origin)
        except TimeoutError as error:
            if queued:
                raise NoneFree(f"its {self._places.most} connections were in use") from error
            raise ConnectTimedOut(f"no connection within {self._connect_s:g} s") from error
        except OSError as error:
            raise CannotConnect(str(error)) from error

    async def _open(self, origin: Origin) -> Connection:
        """A new connection, in the place that was taken for it."""
        host, port, tls = origin
        try:
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: Connection(self._released, self._closed), host, port, ssl=self._tls if tls else None
            )
        except BaseException:
            self._places.give(origin)
            raise
        self._origin_of[connection] = origin
        if not connection.usable:
            self._closed(connection)  # nobody will tell us again
            raise CannotConnect("the connection was closed as soon as it was made")
        return connection

    def _released(self, connection: Connection) -> None:
        if connection.usable:
            origin = self._origin_of[connection]
            self._idle.setdefault(origin, []).append(connection)
            self._places.wake(origin)

    def _closed(self, connection: Connection) -> None:
        origin = self._origin_of.pop(connection, None)
        if origin is None:
            return
        self._places.give(origin)
        idle = self._idle.get(origin)
        if idle and connection in idle:
            idle.remove(connection)

    def _sweep(self) -> None:
        oldest = asyncio.get_running_loop().time() - KEEP_S
        for idle in self._idle.values():
            for connection in [c for c in idle if c.idle_since < oldest]:
                connection.abort()
        self.start()


class TooLate(TimeoutError):
    """A limit of ours passed while somebody was asked. `code` is one of `_TOO_LATE`."""

    def __init__(self, code: str) -> None:
        super().__init__(code)
        self.code = code


_TOO_LATE = {
    "upstream_timeout": ("did not answer in time", "STEPDOWN_FIRST_BYTE_TIMEOUT_S"),
    "upstream_idle_timeout": ("fell silent in the middle of its answer", "STEPDOWN_IDLE_TIMEOUT_S"),
    "upstream_total_timeout": ("had not finished when the call's time was over", "STEPDOWN_TOTAL_TIMEOUT_S"),
}


def failure(error: Exception, name: str, address: Address) -> StepdownError:
    """What to tell a client whose upstream could not be asked: 504 for slow, 502 for unreachable or broken."""
    where = f"Upstream {name} ({address.origin})"
    if isinstance(error, NoneFree):
        return StepdownError(
            504, "upstream_connections_busy", f"{where}: {error}, and none became free in time.",
            hint="Raise STEPDOWN_UPSTREAM_CONNECTIONS, or send less at once.",
        )  # fmt: skip
    if isinstance(error, ConnectTimedOut):
        return StepdownError(
            504, "upstream_connect_timeout", f"{where} did not accept a connection in time.",
            hint="Check its address, or raise STEPDOWN_CONNECT_TIMEOUT_S.",
        )  # fmt: skip
    if isinstance(error, TimeoutError):
        code = error.code if isinstance(error, TooLate) else "upstream_timeout"
        what, setting = _TOO_LATE[code]
        return StepdownError(504, code, f"{where} {what}.", hint=f"Try again, or raise {setting}.")
    if isinstance(error, CannotConnect):
        return StepdownError(
            502, "upstream_unreachable", f"{where} cannot be reached: {error}.",
            hint="Check that it runs and that its base URL is right.",
        )  # fmt: skip
    return StepdownError(
        502, "upstream_broken", f"{where} broke off before it answered: {error or type(error).__name__}.",
        hint="Your call may have run there; try again if that does no harm.",
    )  # fmt: skip


FAILURES = (UpstreamError, TimeoutError)
"""What asking an upstream, or reading its answer, may raise; TimeoutError by who waits."""
