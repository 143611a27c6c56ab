"""Owns which floating-point type a model computes in on this machine. The trainer and its sampler have to agree."""

from functools import cache
from typing import Literal

import torch

from gateway.core.cpu import multiplies_bf16

Precision = Literal["bfloat16", "float32"]


@cache
def native_precision() -> Precision:
    """bfloat16 on a GPU and on a CPU with instructions for it, float32 elsewhere.

    Elsewhere bf16 is emulated value by value: on an AVX2 CPU a training step took thirty times as long as in float32.
    """
    return "bfloat16" if torch.cuda.is_available() or multiplies_bf16() else "float32"
