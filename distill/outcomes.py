"""Owns the ways in which a trainer's work ends early. Each says what becomes of the run."""

from __future__ import annotations

import threading

ENDING = threading.Event()
"""Set once the trainer was asked to end. An exception alone would not do: raised in a destructor, it is swallowed."""


class Stopped(SystemExit):
    """The process was asked to end (SIGTERM): its work goes on with the next start.

    A SystemExit, because that is what event loops and broad handlers let through.
    """


class Paused(Exception):
    """The run waits for a person; the message says why and what to do."""


class Hopeless(Exception):
    """The run fails: the same again would fail the same way; the message says why and what to change."""
