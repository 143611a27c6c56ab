"""Owns the ways in which a trainer's work ends early. Each says what becomes of the run."""

from __future__ import annotations


class Stopped(Exception):
    """The trainer was asked to end (SIGTERM): the run goes on with the next start."""


class Paused(Exception):
    """The run waits for a person; the message says why and what to do."""


class Hopeless(Exception):
    """The run fails: the same again would fail the same way; the message says why and what to change."""
