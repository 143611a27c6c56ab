"""Owns HTTP/1.1 towards upstreams and engines: one connection, the answer that comes on it, and what can go wrong.

Bytes are parsed by httptools (llhttp) and handed on as they came. Must not decide whom to ask, nor ask again.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import cast

import httptools

MOST_HEADER_BYTES = 262_144
_READ_AHEAD = 1 << 18
"""Bytes that may wait for a client that reads slowly, before the upstream has to wait too."""


class UpstreamError(Exception):
    """Asking an upstream, or reading its answer, failed. The text says how."""


class CannotConnect(UpstreamError):
    """No connection came about: nothing can have run."""


class ConnectTimedOut(CannotConnect):
    """No connection came about in time."""


class BrokenOff(UpstreamError):
    """The connection ended, or what came is no HTTP.

    `stale`: it had been used before and not a byte of this answer came, as when a server closes an idle connection
    in the very moment in which it is used again. The request may have run all the same.
    """

    def __init__(self, text: str, stale: bool = False) -> None:
        super().__init__(text)
        self.stale = stale


class Answer:
    """An upstream's answer from its head on. `headers`: names in lower case, in the order they came."""

    __slots__ = ("_connection", "headers", "status")

    def __init__(self, connection: Connection, status: int, headers: list[tuple[bytes, bytes]]) -> None:
        self._connection = connection
        self.status = status
        self.headers = headers

    def header(self, name: bytes) -> str:
        """The first header of this name (in lower case), "" when there is none."""
        for known, value in self.headers:
            if known == name:
                return value.decode("latin-1")
        return ""

    @property
    def ended(self) -> bool:
        """Whether everything that belongs to the body was read."""
        return self._connection.ended(self)

    async def piece(self) -> bytes:
        """What came since the last time, b"" at the end. Raises BrokenOff when the body breaks off."""
        return await self._connection.piece(self)

    async def read(self) -> bytes:
        """The rest of the body."""
        pieces = []
        while piece := await self.piece():
            pieces.append(piece)
        return b"".join(pieces)

    def close(self) -> None:
        """Ends it. An answer that was not read to its end costs the connection."""
        self._connection.leave(self)


class Connection(asyncio.Protocol):
    """A connection that answers one request after another. `idle_since`: loop time of its last answer's end.

    `released` is called with it when an answer has come whole and another request can follow, `closed` when it is gone.
    """

    def __init__(self, released: Callable[[Connection], None], closed: Callable[[Connection], None]) -> None:
        self.idle_since = 0.0
        self._released, self._closed = released, closed
        self._loop = asyncio.get_running_loop()
        self._parser = httptools.HttpResponseParser(self)
        # Some servers send a length beside chunks; the chunks are right (RFC 9112, section 6.3).
        self._parser.set_dangerous_leniencies(lenient_chunked_length=True, lenient_optional_cr_before_lf=True)
        self._transport: asyncio.Transport
        self._answer: Answer | None = None
        self._waiter: asyncio.Future[None] | None = None
        self._error: BrokenOff | None = None
        self._used = False
        self._gone = False
        self._begin()

    def _begin(self) -> None:
        self._headers: list[tuple[bytes, bytes]] = []
        self._header_bytes = self._status = 0
        self._pieces: list[bytes] = []
        self._waiting_bytes = 0
        self._paused = False
        self._asked = self._headed = self._whole = self._until_eof = False

    # What the pool and the answer call.

    @property
    def usable(self) -> bool:
        """Whether it can take a request."""
        return not (self._gone or self._asked or self._transport.is_closing())

    async def ask(self, head: bytes, body: bytes) -> Answer:
        """Sends a request; returns when the answer's head is there. Raises BrokenOff."""
        self._begin()
        self._asked = True
        try:
            if len(body) <= _READ_AHEAD:
                self._transport.write(head + body)
            else:
                self._transport.writelines((head, body))
            while not self._headed:
                await self._more()
        except BaseException:
            self.abort()
            raise
        self._answer = answer = Answer(self, self._status, self._headers)
        return answer

    def ended(self, answer: Answer) -> bool:
        """See `Answer.ended`."""
        return answer is not self._answer or (self._whole and not self._pieces)

    async def piece(self, answer: Answer) -> bytes:
        """See `Answer.piece`."""
        while answer is self._answer and not self._pieces:
            if self._whole:
                return b""
            await self._more()
        if answer is not self._answer:
            return b""
        pieces, self._pieces = self._pieces, []
        self._waiting_bytes = 0
        if self._paused:
            self._paused = False
            self._transport.resume_reading()
        return pieces[0] if len(pieces) == 1 else b"".join(pieces)

    def leave(self, answer: Answer) -> None:
        """The answer is not wanted any more."""
        if answer is self._answer:
            self._answer = None
            if self._asked:
                self.abort()
            elif not self._gone:
                self._released(self)

    def abort(self) -> None:
        """Closes the connection at once."""
        self._transport.abort()

    async def _more(self) -> None:
        """Waits for the next bytes."""
        if self._error is not None:
            raise self._error
        self._waiter = self._loop.create_future()
        try:
            await self._waiter
        finally:
            self._waiter = None
        if self._error is not None and not (self._pieces or self._whole):
            raise self._error

    # What the event loop and the parser call.

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        self._transport = cast(asyncio.Transport, transport)  # uvloop's own class does not say that it is one

    def data_received(self, data: bytes) -> None:
        if not self._asked:  # nobody asked
            self.abort()
            return
        try:
            self._parser.feed_data(data)
        except httptools.HttpParserUpgrade:
            self._fail("the upstream wants to speak another protocol")
        except httptools.HttpParserError as error:
            self._fail(f"what it sent is no HTTP: {error.__context__ or error}")
        self._wake()
        if self._waiting_bytes > _READ_AHEAD and not self._paused and not self._whole:
            self._paused = True
            self._transport.pause_reading()

    def eof_received(self) -> None:
        if self._headed and self._until_eof and not self._whole:
            self.on_message_complete()
            self._wake()

    def connection_lost(self, exc: Exception | None) -> None:
        self._gone = True
        if not self._whole:
            self._fail(f"the connection was closed{f': {exc}' if exc else ''}")
        self._wake()
        self._closed(self)

    def on_header(self, name: bytes, value: bytes) -> None:
        self._header_bytes += len(name) + len(value)
        if self._header_bytes > MOST_HEADER_BYTES:
            raise ValueError(f"its headers are longer than {MOST_HEADER_BYTES} bytes")
        if not self._headed:  # after it: trailers, which we do not pass on
            self._headers.append((name.lower(), value))

    def on_headers_complete(self) -> None:
        self._status = status = self._parser.get_status_code()
        if status > 599:
            raise ValueError(f"there is no status {status}")
        if status < 200:  # 100 Continue, 103 Early Hints: the answer is still to come
            return
        self._headed = True
        names = [name for name, _ in self._headers]
        self._until_eof = not (b"content-length" in names or b"transfer-encoding" in names or status in (204, 304))

    def on_body(self, data: bytes) -> None:
        self._pieces.append(data)
        self._waiting_bytes += len(data)

    def on_message_begin(self) -> None:
        if self._whole:
            raise ValueError("it sent more than one answer")

    def on_message_complete(self) -> None:
        """The answer has come whole: the connection may be used again, unless either side wants it to end."""
        if not self._headed:
            self._headers = []
            return
        self._whole = True
        unsent = self._transport.get_write_buffer_size() > 0  # answered before it had read all that we send
        if self._until_eof or unsent or not self._parser.should_keep_alive():
            self._transport.close()
        self._asked = False
        self._used = True
        self.idle_since = self._loop.time()

    def _fail(self, text: str) -> None:
        stale = self._used and not self._header_bytes and not self._headed
        self._error = self._error or BrokenOff(text, stale)
        self.abort()

    def _wake(self) -> None:
        if self._waiter is not None and not self._waiter.done():
            self._waiter.set_result(None)


def head_of(method: str, host: str, target: str, headers: list[tuple[bytes, bytes]], length: int | None) -> bytes:
    """A request's head. Raises ValueError for what cannot stand in one."""
    lines = [f"{method} {target} HTTP/1.1\r\nhost: {host}".encode()]
    lines += [b"%b: %b" % header for header in headers]
    if length is not None:
        lines.append(b"content-length: %d" % length)
    head = b"\r\n".join((*lines, b"", b""))
    if not head.count(b"\n") == head.count(b"\r") == len(lines) + 2 or b"\0" in head:
        raise ValueError("its address or a header holds a line break")
    return head
