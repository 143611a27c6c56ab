"""The gateway with the seeded world behind it, for working on the dashboard: `python -m tests.e2e.dashboard`.

Its data lies in STEPDOWN_HOME (default: a temporary folder), begun afresh each time; it prints the admin token.
"""

from __future__ import annotations

import os
import signal
import sys
import tempfile
from contextlib import ExitStack
from pathlib import Path


def main() -> None:
    """Starts PostgreSQL, seeds it, serves until Ctrl-C."""
    home = Path(os.environ.setdefault("STEPDOWN_HOME", tempfile.mkdtemp(prefix="stepdown-dashboard-")))
    home.mkdir(parents=True, exist_ok=True)

    from gateway.admin.session import admin_token
    from gateway.app import serve
    from gateway.core.db import session_scope
    from gateway.core.embedded import Postgres, running
    from gateway.core.migrate import upgrade_head
    from gateway.core.settings import settings
    from gateway.models import Project
    from tests.e2e.world import build

    # uvicorn passes SIGTERM on when it has ended: as an exception, so that PostgreSQL is ended too.
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    with ExitStack() as stack:
        postgres = Postgres(home)
        stack.enter_context(running(postgres, home / "postgres.log"))
        os.environ["DATABASE_URL"] = postgres.url
        settings.cache_clear()
        upgrade_head()
        with session_scope() as session:
            if session.query(Project).first() is None:
                build(session)
        print(f"http://{settings().host}:{settings().port}  token: {admin_token()}", flush=True)
        serve(settings().host, settings().port)


if __name__ == "__main__":
    main()
