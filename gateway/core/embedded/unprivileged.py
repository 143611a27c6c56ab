"""Owns how root starts a server that refuses to run as root. Must not change anything for other users."""

from __future__ import annotations

import os
import pwd
import shutil
import stat
import subprocess
from collections.abc import Sequence
from dataclasses import replace
from functools import lru_cache
from pathlib import Path

from gateway.core.errors import StepdownError
from gateway.core.processes import Launch

_UNSHARE = ["unshare", "--user", "--map-user=1000", "--map-group=1000"]
_NOBODY = "nobody"


def as_unprivileged(launch: Launch, owned: Sequence[Path]) -> Launch:
    """The same launch for a user who is not root; for root, a way to be somebody else.

    First choice is a user namespace in which root appears as an ordinary user: files stay root's. Where the
    kernel or a container forbids that, user `nobody`, who is then given the paths in `owned`.
    Raises StepdownError when neither works.
    """
    if os.geteuid() != 0:
        return launch
    if _namespaces_work():
        return replace(launch, argv=[*_UNSHARE, *launch.argv])
    blocked = _first_closed([Path(launch.argv[0]), *owned], owned)
    if blocked is not None:
        raise StepdownError(
            503,
            "running_as_root",
            f"PostgreSQL refuses to run as root, and user `{_NOBODY}` may not enter {blocked}.",
            hint="Run as an ordinary user, or put the project and STEPDOWN_HOME where every user may enter, "
            "or set DATABASE_URL to your own PostgreSQL.",
        )
    account = pwd.getpwnam(_NOBODY)
    for path in owned:
        if path.stat().st_uid == account.pw_uid:
            continue
        for each in [*path.rglob("*"), path]:  # the folder itself last: it is the sign that all inside is done
            os.chown(each, account.pw_uid, account.pw_gid, follow_symlinks=False)
    return replace(launch, user=_NOBODY)


@lru_cache
def _namespaces_work() -> bool:
    if shutil.which(_UNSHARE[0]) is None:
        return False
    return subprocess.run([*_UNSHARE, "true"], capture_output=True, check=False).returncode == 0


def _first_closed(paths: Sequence[Path], owned: Sequence[Path] = ()) -> Path | None:
    """The outermost parent folder that other users may not enter, those in `owned` aside."""
    for path in paths:
        for parent in reversed(path.resolve().parents):
            if parent not in owned and not parent.stat().st_mode & stat.S_IXOTH:
                return parent
    return None
