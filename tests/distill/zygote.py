"""A process that has loaded all that a trainer needs and forks one for each line "RUN EPOCH": twenty starts in no time.

Prints the trainer's pid, and `ended CODE` when it is gone. Computes nothing itself: threads do not survive a fork.
"""

from __future__ import annotations

import os
import sys

import peft  # noqa: F401
import torch  # noqa: F401
import transformers  # noqa: F401

from distill import train
from rl.rollout import local  # noqa: F401


def main() -> None:
    print("ready", flush=True)
    for line in sys.stdin:
        run, epoch = line.split()
        pid = os.fork()
        if pid == 0:
            sys.stdin.close()
            os._exit(train.main([run, "--epoch", epoch]))
        print(pid, flush=True)
        _, status = os.waitpid(pid, 0)
        print(f"ended {os.waitstatus_to_exitcode(status)}", flush=True)


if __name__ == "__main__":
    main()
