"""Owns how hard the writer works while calls come in: a burst of them needs the processor more than their storing does.

Pure functions. Nothing is at stake but time: what waits lies in the spool.
"""

from __future__ import annotations

REST = 9.0
"""Seconds of rest for each second of work: a tenth of a core, which stores some 400 calls a second on the spot."""
MOST_LAG_S = 10.0
"""How far storing may fall behind; beyond it the writer works without rest."""


def rest_s(worked_s: float, lag_s: float) -> float:
    """How long to rest after a batch that took `worked_s`, its last call having come `lag_s` ago."""
    return worked_s * REST if lag_s < MOST_LAG_S else 0.0
