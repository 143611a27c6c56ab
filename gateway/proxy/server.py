"""Owns how answers are written to the client's socket: uvicorn's protocol, with an answer's head and the first of its
body in one write.

Two writes are two packets, and two times the client wakes up. Must know nothing of what it carries.
"""

from __future__ import annotations

import asyncio
from typing import Any
from urllib.parse import unquote

import httptools
from uvicorn.protocols.http.httptools_impl import STATUS_LINE, HttpToolsProtocol, RequestResponseCycle

from gateway.core.errors import StepdownError
from gateway.proxy.refusal import turned_away

_NO_BODY = (204, 304)


class Exchange(RequestResponseCycle):
    """A request and its answer. A head without a length, as of a stream, is not kept waiting for a body to come."""

    _head = b""
    _until_closed = False

    async def send(self, message: Any) -> None:
        """ASGI's send. Raises RuntimeError for messages out of order, and for a body that is not of its length."""
        if self.flow.write_paused and not self.disconnected:
            await self.flow.drain()
        if self.disconnected:
            return
        if message["type"] == "http.response.start" and not self.response_started:
            self._start(message["status"], message.get("headers", ()))
        elif message["type"] == "http.response.body" and self.response_started and not self.response_complete:
            self._body(message.get("body", b""), message.get("more_body", False))
        else:
            raise RuntimeError(f"{message['type']} does not come now")

    def _start(self, status: int, headers: Any) -> None:
        self.response_started = True
        self.waiting_for_100_continue = False
        lines = [STATUS_LINE[status].removesuffix(b"\r\n")]
        for name, value in headers:
            if name == b"content-length":
                self.expected_content_length = int(value)
                self.chunked_encoding = False
            elif name == b"connection":
                self.keep_alive = self.keep_alive and b"close" not in value.lower()
                continue
            lines.append(b"%b: %b" % (name, value))
        if not self.keep_alive:
            lines.append(b"connection: close")
        if self.chunked_encoding is None and self.scope["method"] != "HEAD" and status not in _NO_BODY:
            self._until_closed = self.scope["http_version"] == "1.0"  # that one knows no chunks
            self.chunked_encoding = not self._until_closed
            if self.chunked_encoding:
                lines.append(b"transfer-encoding: chunked")
        self._head = head = b"\r\n".join((*lines, b"", b""))
        if not head.count(b"\r") == head.count(b"\n") == len(lines) + 1:
            raise RuntimeError("a header of the answer holds a line break")
        if self.chunked_encoding or self._until_closed:
            asyncio.get_running_loop().call_soon(self._flush)

    def _flush(self) -> None:
        if self._head and not self.transport.is_closing():
            self.transport.write(self._head)
        self._head = b""

    def _body(self, body: bytes, more: bool) -> None:
        head, self._head = self._head, b""
        if self.scope["method"] == "HEAD":
            self.transport.write(head)
            self.expected_content_length = 0
        elif self.chunked_encoding:
            chunk = b"%b%x\r\n%b\r\n" % (head, len(body), body) if body else head
            if out := chunk if more else chunk + b"0\r\n\r\n":
                self.transport.write(out)
        elif self._until_closed:
            self.transport.write(head + body)
        else:
            self.expected_content_length -= len(body)
            if self.expected_content_length < 0:
                raise RuntimeError("the body is longer than its content-length")
            self.transport.write(head + body)
        if not more:
            self._end()

    def _end(self) -> None:
        if self.expected_content_length != 0:
            raise RuntimeError("the body is shorter than its content-length")
        self.response_complete = True
        self.message_event.set()
        if not self.keep_alive:
            self.transport.close()
        self.on_response()


class Protocol(HttpToolsProtocol):
    """A client's connection."""

    def on_headers_complete(self) -> None:
        """Begins to answer a request, or queues it behind the one before it."""
        version = self.parser.get_http_version()
        url = httptools.parse_url(self.url)
        path = url.path.decode("ascii")
        self.scope["method"] = self.parser.get_method().decode("ascii")
        self.scope["http_version"] = version
        self.scope["path"] = unquote(path) if "%" in path else path
        self.scope["raw_path"] = url.path
        self.scope["query_string"] = url.query or b""
        before = self.cycle
        self.cycle = Exchange(
            scope=self.scope,
            transport=self.transport,
            flow=self.flow,
            logger=self.logger,
            access_logger=self.access_logger,
            access_log=False,
            default_headers=[],
            message_event=asyncio.Event(),
            expect_100_continue=self.expect_100_continue,
            keep_alive=version != "1.0" and self.parser.should_keep_alive(),
            on_response=self.on_response_complete,
        )
        if before is None or before.response_complete:
            self._start_asgi_task(self.cycle, self.app)
        else:
            self.flow.pause_reading()
            self.pipeline.appendleft((self.cycle, self.app))

    def send_400_response(self, msg: str) -> None:
        """Answers what cannot be read as HTTP, and closes the connection."""
        error = StepdownError(400, "invalid_http", msg, hint="What was sent is not HTTP/1.1, or its head is too large.")
        headers, body = turned_away("", error)
        head = [*headers, (b"content-length", b"%d" % len(body)), (b"connection", b"close")]
        lines = [STATUS_LINE[400], *(b"%b: %b\r\n" % header for header in head), b"\r\n", body]
        self.transport.write(b"".join(lines))
        self.transport.close()
