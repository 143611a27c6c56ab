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
        self._begun: list[bytes] = []  # of an event whose end has not come; joined once, for one may be megabytes long
        self._last = b""  # two bytes of it: an end can begin there

    def feed(self, piece: bytes) -> list[bytes]:
        """The events that `piece` completes."""
        before = len(self._last)
        window = self._last + piece if before else piece
        events, start = [], 0
        for match in _END.finditer(window):
            end = match.end() - before
            events.append(b"".join((*self._begun, piece[start:end])) if self._begun else piece[start:end])
            self._begun, start = [], end
        if rest := piece[start:]:
            self._begun.append(rest)
        self._last = window[-2:] if not events else rest[-2:]
        return events

    def rest(self) -> bytes:
        """What was fed after the last whole event."""
        rest = b"".join(self._begun)
        self._begun, self._last = [], b""
        return rest


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
