"""Owns the life of an engine's processes: they end when whoever started them does, even by `kill -9`.

Run as `python -m rl.rollout.guard COMMAND…` in a session of its own, with a pipe as standard input: when the other
end closes, the whole process group is ended. Imports nothing heavy.
"""

import os
import select
import signal
import subprocess
import sys
import time


def main(command: list[str], grace_s: float = 5.0) -> int:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)  # the group is ended through here, not around here
    child = subprocess.Popen(command, stdin=subprocess.DEVNULL)
    while child.poll() is None:
        readable, _, _ = select.select([sys.stdin], [], [], 0.5)
        if readable and not os.read(sys.stdin.fileno(), 1):
            os.killpg(0, signal.SIGTERM)
            deadline = time.monotonic() + grace_s
            while child.poll() is None and time.monotonic() < deadline:
                time.sleep(0.05)
            break
    # An engine's own children can outlive it: nothing of this group may stay.
    os.killpg(0, signal.SIGKILL)
    return 1  # pragma: no cover - the line above ends this process too


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
