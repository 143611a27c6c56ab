"""Owns how a server that refuses root, or a user without an account, is started. Must not change things for others."""

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

_NOBODY = "nobody"


def as_unprivileged(launch: Launch, owned: Sequence[Path]) -> Launch:
    """The same launch for an ordinary user; for others, a way to appear as one.

    PostgreSQL refuses root, and a user id that no account has (as containers like to use). First choice is a user
    namespace in which we appear as `nobody`: files stay ours. Where the kernel or a container forbids that, root
    really becomes `nobody`, who is then given the paths in `owned`. Raises StepdownError when neither works.
    """
    root = os.geteuid() == 0
    if not root and _has_account(os.geteuid()):
        return launch
    namespace = _namespace()
    if namespace is not None:
        return replace(launch, argv=[*namespace, *launch.argv])
    if not root:
        raise StepdownError(
            503,
            "user_without_account",
            f"PostgreSQL refuses to run for user id {os.geteuid()}, which has no account on this system.",
            hint="Run as a user with an entry in /etc/passwd, or set DATABASE_URL to your own PostgreSQL.",
        )
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


def _has_account(uid: int) -> bool:
    try:
        pwd.getpwuid(uid)
    except KeyError:
        return False
    return True


@lru_cache
def _namespace() -> list[str] | None:
    """The command that starts another one in a user namespace where we are `nobody`, None when that is forbidden."""
    if shutil.which("unshare") is None:
        return None
    account = pwd.getpwnam(_NOBODY)
    command = ["unshare", "--user", f"--map-user={account.pw_uid}", f"--map-group={account.pw_gid}"]
    return command if subprocess.run([*command, "true"], capture_output=True, check=False).returncode == 0 else None


def _first_closed(paths: Sequence[Path], owned: Sequence[Path] = ()) -> Path | None:
    """The outermost parent folder that other users may not enter, those in `owned` aside."""
    for path in paths:
        for parent in reversed(path.resolve().parents):
            if parent not in owned and not parent.stat().st_mode & stat.S_IXOTH:
                return parent
    return None
