"""Owns a supervisor's claim on its home and port, before and after it runs. Must not read a command line."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console

from gateway.core.errors import StepdownError
from gateway.core.home import ensure_home
from gateway.core.ports import holder, is_free
from gateway.core.settings import settings
from gateway.supervisor.deployments import Deployments
from gateway.supervisor.instance import Lock, end_orphans, refuse_second
from gateway.supervisor.service import address
from gateway.supervisor.services import stages
from gateway.supervisor.supervisor import Supervisor
from gateway.supervisor.view import View


@contextmanager
def claimed(home: Path) -> Iterator[None]:
    """The home is ours and the port is free for the length of the block.

    Ends what a killed run left behind. Raises StepdownError when another one runs, the home cannot hold our
    data, or somebody else has the port.
    """
    refuse_second(home)
    ensure_home(home)
    lock = Lock(home)
    try:
        ended = end_orphans(home)
        if ended:
            print(f"The last run was killed; what it left behind was ended: {', '.join(ended)}.", flush=True)
        host, port = settings().host, settings().port
        if not is_free(port, host):
            raise StepdownError(
                409,
                "port_taken",
                f"Port {port} on {host} is taken by {holder(port)}.",
                hint="Stop it, or choose another port: `stepdown up --port N` (or STEPDOWN_PORT=N).",
            )
        yield
    finally:
        lock.release()


def supervise(home: Path) -> int:
    """Runs everything until told to stop; the exit status. Needs the claim."""
    view = View(Console(), address(settings().host, settings().port))
    env = {"STEPDOWN_HOME": str(home), "STEPDOWN_PORT": str(settings().port)}
    return Supervisor(stages(settings(), home), home, view, env, Deployments).run()
