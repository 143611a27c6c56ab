"""Owns cutting a server-sent-event stream into events, whatever the pieces. Must not know what events mean."""

from __future__ import annotations

import re

# A line ends with \n, \r\n or \r, and not every stream is true to one of them: \n\r is an end once no \n follows.
_END = re.compile(rb"\n\r?\n|\r\r|\n\r(?=[^\n])")


BOM = b"\xef\xbb\xbf"
"""Some streams begin with it; the standard has it ignored."""


class Events:
    """Collects pieces and gives back whole events, each with its terminator: joined, they are the stream again."""

    def __init__(self) -> None:
        self._tail = b""

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that `piece` completes."""
        buffer = self._tail + piece if self._tail else piece
        events, start = [], 0
        # An end can begin two bytes before the piece; further back all was searched already.
        for match in _END.finditer(buffer, max(len(self._tail) - 2, 0)):
            events.append(buffer[start : match.end()])
            start = match.end()
        self._tail = buffer[start:]
        return events

    def rest(self) -> bytes:
        """What was fed after the last whole event."""
        tail, self._tail = self._tail, b""
        return tail


def data_of(event: bytes) -> bytes | None:
    """The event's data, its `data:` lines joined by newlines. None for comments and events without data."""
    if event.startswith(b"data: ") and b"\n" not in (body := event[6:].rstrip(b"\r\n")) and b"\r" not in body:
        return body
    lines = []
    for line in event.removeprefix(BOM).splitlines():
        if line.startswith(b"data:"):
            value = line[5:]
            lines.append(value[1:] if value.startswith(b" ") else value)
    return b"\n".join(lines) if lines else None
