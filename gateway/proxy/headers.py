"""Owns which headers cross the gateway, in both directions. Must not know the body."""

from __future__ import annotations

import re
from collections.abc import Iterable
from functools import lru_cache

from gateway.providers.spec import UpstreamKind

_HOP_BY_HOP = frozenset(
    b"connection keep-alive proxy-authenticate proxy-authorization proxy-connection te trailer transfer-encoding "
    b"upgrade".split()
)
_OURS = b"x-stepdown-"
# The client's key is ours alone; cookies on this origin are the dashboard's.
_NOT_SENT_ON = _HOP_BY_HOP | frozenset(
    b"host content-length expect authorization api-key x-api-key cookie accept-encoding".split()
)
_NOT_SENT_BACK = _HOP_BY_HOP | {b"content-length", b"set-cookie"}
_DECODABLE = ("gzip", "deflate", "zstd", "identity")
_PRIVATE = re.compile(rb"^openai-(organization|project)$|key|token|secret|auth|credential|password|signature")
_LENGTH = re.compile(r"[0-9]{1,18}")

_KEYS: dict[UpstreamKind, bytes] = {"anthropic": b"x-api-key", "azure": b"api-key"}
_VERSION = (b"anthropic-version", b"2023-06-01")

Headers = list[tuple[bytes, bytes]]


class ClientHeaders:
    """What the client's headers say to us, and the rest, to send on as they came."""

    __slots__ = (
        "accept", "capture", "credentials", "encoding", "expects", "forward", "kind", "length", "task", "token",
        "traceparent", "trajectory",
    )  # fmt: skip

    def __init__(self, raw: Iterable[tuple[bytes, bytes]]) -> None:
        self.token: str | None = None
        self.encoding: str | None = None
        self.length: int | None = None
        self.task: str | None = None
        self.capture: str | None = None
        self.trajectory: str | None = None
        self.traceparent: str | None = None
        self.accept = ""
        self.kind = ""
        self.expects = False
        self.forward: Headers = []
        self.credentials: Headers = []
        dropped: set[bytes] | None = None
        for header in raw:
            name, value = header
            if name not in _NOT_SENT_ON and not name.startswith(_OURS):
                self.forward.append(header)
                if name == b"content-encoding":
                    self.encoding = _text(value).lower()
                elif name == b"content-type":
                    self.kind = _text(value).lower()
                elif name == b"traceparent":
                    self.traceparent = _text(value)
            elif name == b"connection":
                dropped = _named(value)
            else:
                self._read(name, _text(value))
        if dropped:
            self.forward = [(n, v) for n, v in self.forward if n not in dropped]

    @property
    def repeatable(self) -> bool:
        """Whether the client says that the same request, sent twice, runs once."""
        return any(name == b"idempotency-key" for name, _ in self.forward)

    def _read(self, name: bytes, value: str) -> None:
        if name == b"authorization":
            scheme, _, token = value.partition(" ")
            self.token = token.strip() if scheme.lower() == "bearer" else self.token
            self.credentials.append((name, value.encode("latin-1")))
        elif name in (b"api-key", b"x-api-key"):
            self.token = self.token or value
            self.credentials.append((name, value.encode("latin-1")))
        elif name == b"content-length":
            self.length = int(value) if _LENGTH.fullmatch(value) else None
        elif name == b"accept-encoding":
            self.accept = value
        elif name == b"expect":
            self.expects = value.lower() == "100-continue"
        elif name == b"x-stepdown-task":
            self.task = value
        elif name == b"x-stepdown-capture":
            self.capture = value.lower()
        elif name == b"x-stepdown-trajectory":
            self.trajectory = value[:200]

    def to_upstream(
        self,
        credential: str,
        stream: bool,
        encoded: bool = True,
        kind: UpstreamKind = "openai",
        elsewhere: bool = False,
    ) -> Headers:
        """The headers for the upstream, with its credential in place of the client's key, where its kind has it.

        A stream is asked for uncompressed: its events have to be read as they pass. `encoded` False: the body
        was decompressed to be changed, so its content-encoding no longer holds. `elsewhere`: it is not the provider
        that the client thinks of, and gets nothing of the client's secrets and accounts there.
        """
        headers = self.forward.copy() if encoded else [h for h in self.forward if h[0] != b"content-encoding"]
        if elsewhere:
            headers = [header for header in headers if not _is_private(header[0])]
        if credential:
            headers.append(_credential(kind, credential))
        if kind == "anthropic" and all(name != b"anthropic-version" for name, _ in headers):
            headers.append(_VERSION)
        headers.append((b"accept-encoding", b"identity" if stream else acceptable(self.accept)))
        return headers


@lru_cache(maxsize=512)
def _is_private(name: bytes) -> bool:
    return name != b"idempotency-key" and _PRIVATE.search(name) is not None


def _text(value: bytes) -> str:
    return value.decode("latin-1").strip()


@lru_cache(maxsize=1024)
def _credential(kind: UpstreamKind, credential: str) -> tuple[bytes, bytes]:
    name = _KEYS.get(kind)
    return (name, credential.encode()) if name else (b"authorization", f"Bearer {credential}".encode())


@lru_cache(maxsize=1024)
def acceptable(accept: str) -> bytes:
    """The encodings that the client accepts, less what we could not read for the record (brotli)."""
    codings = [c.strip() for c in accept.split(",")]
    readable = [c for c in codings if c.partition(";")[0].strip().lower() in _DECODABLE]
    return ", ".join(readable).encode("latin-1") or b"identity"


def _named(connection: bytes) -> set[bytes] | None:
    """Headers that a `connection` header declares to be for this hop alone."""
    if connection in (b"keep-alive", b"close"):
        return None
    return {name.strip().lower() for name in connection.split(b",")} - {b"keep-alive", b"close"}


@lru_cache(maxsize=512)
def _sent_back(name: bytes) -> bytes | None:
    """The name under which an upstream's header is sent back; None for those that are not."""
    lower = name.lower()
    return None if lower in _NOT_SENT_BACK or lower.startswith(_OURS) else lower


def to_client(raw: Iterable[tuple[bytes, bytes]], ours: Headers) -> Headers:
    """An upstream's headers for the client, and ours. Without content-length: the caller knows what it sends."""
    headers = [(sent, value) for name, value in raw if (sent := _sent_back(name)) is not None]
    headers += ours
    return headers


@lru_cache(maxsize=1024)
def header_value(text: str) -> bytes:
    """A name as header value: what is not printable ASCII becomes `?`."""
    return "".join(c if " " <= c <= "~" else "?" for c in text).encode()
