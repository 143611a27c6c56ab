"""Owns what must be true of the database before anything uses it: newest schema, a project, no engine called ready.

Run as its own process, so that a slow database never holds up the supervisor.
"""

from __future__ import annotations

import sys

from sqlalchemy.exc import OperationalError

from gateway.core.db import session_scope
from gateway.core.errors import StepdownError
from gateway.core.migrate import upgrade_head
from gateway.supervisor import repository

DEFAULT_PROJECT = "default"


def main() -> int:
    try:
        upgrade_head()
        with session_scope() as session:
            repository.ensure_a_project(session, DEFAULT_PROJECT)
            repository.forget_engines(session)
    except StepdownError as error:
        print(error, file=sys.stderr)
        return 1
    except OperationalError as error:
        print(f"PostgreSQL does not answer: {' '.join(str(error.orig).split())}", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
