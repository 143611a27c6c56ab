"""Owns which floating-point type a model computes in on this machine. The trainer and its sampler have to agree."""

from functools import cache
from pathlib import Path
from typing import Literal

import torch

Precision = Literal["bfloat16", "float32"]

_CPUINFO = Path("/proc/cpuinfo")
_MULTIPLIES_BF16 = {"avx512_bf16", "amx_bf16", "bf16"}  # x86's names, ARM's name


@cache
def native_precision() -> Precision:
    """bfloat16 on a GPU and on a CPU with instructions for it, float32 elsewhere.

    Elsewhere bf16 is emulated value by value: on an AVX2 CPU a training step took sixty times as long as in float32.
    """
    if torch.cuda.is_available():
        return "bfloat16"
    return "bfloat16" if _MULTIPLIES_BF16 & cpu_features(_CPUINFO) else "float32"


def cpu_features(cpuinfo: Path) -> set[str]:
    """The features that the kernel lists for the first core; none where there is no such file."""
    try:
        lines = cpuinfo.read_text().splitlines()
    except OSError:
        return set()
    listed = (line.partition(":")[2] for line in lines if line.startswith(("flags", "Features")))
    return set(next(listed, "").split())
