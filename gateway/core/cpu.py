"""Owns what the CPU can do, as the kernel lists it."""

from __future__ import annotations

from pathlib import Path

_CPUINFO = Path("/proc/cpuinfo")
_MULTIPLIES_BF16 = {"avx512_bf16", "amx_bf16", "bf16"}  # x86's names, ARM's name


def multiplies_bf16() -> bool:
    """Whether there are instructions for bf16 products. Without them a model is better off in float32."""
    return bool(_MULTIPLIES_BF16 & _features())


def _features() -> set[str]:
    try:
        lines = _CPUINFO.read_text().splitlines()
    except OSError:
        return set()
    listed = (line.partition(":")[2] for line in lines if line.startswith(("flags", "Features")))
    return set(next(listed, "").split())
