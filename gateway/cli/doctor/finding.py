"""Owns what a check says. Must not look at anything."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal


@dataclass(frozen=True)
class Finding:
    """`what` was found, with the value that counts; `do`: what to do about it.

    `state`: `wrong` needs mending, a `note` is worth knowing.
    """

    check: str
    state: Literal["ok", "note", "wrong"]
    what: str
    do: str = ""

    def __str__(self) -> str:
        mark = {"ok": "ok ", "note": "-- ", "wrong": "NO "}[self.state]
        return f"{mark} {self.what}: {self.do}" if self.do else f"{mark} {self.what}"


def judged(check: str, good: bool, what: str, do: str) -> Finding:
    """`do` is said where it is not good."""
    return Finding(check, "ok", what) if good else Finding(check, "wrong", what, do)
