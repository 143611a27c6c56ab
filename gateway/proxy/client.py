"""Owns the connections to upstreams and engines: one pool, separate time limits, no retry of its own.

Must not change a body nor follow a redirect.
"""

from __future__ import annotations

import asyncio
import io
from functools import lru_cache

import aiohttp
from multidict import CIMultiDict
from yarl import URL

from gateway.core.errors import StepdownError

_LARGE = 1 << 20
_NOT_AUTOMATIC = frozenset({"User-Agent", "Accept", "Accept-Encoding", "Content-Type"})


@lru_cache(maxsize=1024)
def endpoint(base_url: str, path: str, query: str) -> URL:
    """The URL of `path` under a base URL (up to and including /v1)."""
    return URL(f"{base_url.rstrip('/')}/{path}" + (f"?{query}" if query else ""), encoded=True)


class UpstreamClient:
    """Sends a body somewhere and gives back the open response, its body untouched as it came.

    Limits the time to connect; who calls limits the rest.
    """

    def __init__(self, connect_s: float) -> None:
        self._timeout = aiohttp.ClientTimeout(total=None, sock_connect=connect_s)
        self._session: aiohttp.ClientSession | None = None

    def start(self) -> None:
        """Opens the pool; needs a running event loop."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, ttl_dns_cache=30, keepalive_timeout=15),
            cookie_jar=aiohttp.DummyCookieJar(),
            auto_decompress=False,
            skip_auto_headers=_NOT_AUTOMATIC,
            timeout=self._timeout,
            max_line_size=65536,
            max_field_size=65536,
        )

    async def close(self) -> None:
        """Closes every connection."""
        if self._session is not None:
            await self._session.close()

    async def ask(
        self, url: URL, headers: CIMultiDict[str], body: bytes, method: str = "POST"
    ) -> aiohttp.ClientResponse:
        """Returns when the response's headers are there. Raises aiohttp.ClientError, TimeoutError or OSError."""
        assert self._session is not None, "start() first"
        data = body if len(body) < _LARGE else io.BytesIO(body)
        return await self._session.request(
            method, url, data=data if body or method == "POST" else None, headers=headers, allow_redirects=False
        )


def failure(error: Exception, name: str, url: URL) -> StepdownError:
    """What to tell a client whose upstream could not be asked: 504 for slow, 502 for unreachable or broken."""
    where = f"Upstream {name} ({url.origin()})"
    if isinstance(error, aiohttp.ConnectionTimeoutError):
        return StepdownError(
            504, "upstream_connect_timeout", f"{where} did not accept a connection in time.",
            hint="Check its address, or raise STEPDOWN_CONNECT_TIMEOUT_S.",
        )  # fmt: skip
    if isinstance(error, TimeoutError | asyncio.TimeoutError):
        return StepdownError(
            504, "upstream_timeout", f"{where} did not answer in time.",
            hint="Try again, or raise STEPDOWN_FIRST_BYTE_TIMEOUT_S.",
        )  # fmt: skip
    if isinstance(error, aiohttp.ClientConnectorError | aiohttp.InvalidURL):
        return StepdownError(
            502, "upstream_unreachable", f"{where} cannot be reached: {error}.",
            hint="Check that it runs and that its base URL is right.",
        )  # fmt: skip
    return StepdownError(
        502, "upstream_broken", f"{where} broke off before it answered: {error or type(error).__name__}.",
        hint="Your call may have run there; try again if that does no harm.",
    )  # fmt: skip


FAILURES = (aiohttp.ClientError, TimeoutError, OSError)
"""What asking an upstream, or reading its answer, may raise."""
