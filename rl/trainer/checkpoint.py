"""Owns a checkpoint's files: adapter (peft's format), optimizer state and counters. No pickle; whole or not at all."""

import json
import os
import secrets
import shutil
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file, save_file
from torch import Tensor

ADAPTER = "adapter_model.safetensors"
OPTIMIZER = "optimizer.safetensors"
STATE = "trainer.json"


@contextmanager
def whole_folder(target: Path) -> Iterator[Path]:
    """A folder to write into, which takes the name `target` only when the block ends well, replacing what was there."""
    target.parent.mkdir(parents=True, exist_ok=True)
    work = target.with_name(f".{target.name}.{secrets.token_hex(4)}")
    work.mkdir()
    try:
        yield work
        for file in work.iterdir():
            with file.open("rb") as handle:
                os.fsync(handle.fileno())
        replaced = target.with_name(f".{target.name}.{secrets.token_hex(4)}.old")
        if target.exists():
            target.rename(replaced)
        work.rename(target)
        shutil.rmtree(replaced, ignore_errors=True)
    finally:
        shutil.rmtree(work, ignore_errors=True)


def write(folder: Path, adapter: dict[str, Tensor], optimizer: torch.optim.Optimizer, state: dict[str, Any]) -> None:
    """Write a checkpoint into `folder` (an empty one)."""
    # detach().clone(): safetensors refuses tensors that share memory or need gradients.
    save_file({name: tensor.detach().clone().contiguous() for name, tensor in adapter.items()}, folder / ADAPTER)
    moments: dict[str, Tensor] = {"rng": torch.get_rng_state()}
    for index, values in optimizer.state_dict()["state"].items():
        for name, value in values.items():
            moments[f"{index}.{name}"] = value.detach().clone().contiguous()
    save_file(moments, folder / OPTIMIZER)
    (folder / STATE).write_text(json.dumps(state))


def read(folder: Path, optimizer: torch.optim.Optimizer) -> tuple[dict[str, Tensor], dict[str, Any]]:
    """Read a checkpoint: returns the adapter's tensors and the counters, and fills `optimizer` and the RNG."""
    missing = [name for name in (ADAPTER, OPTIMIZER, STATE) if not (folder / name).is_file()]
    if missing:
        raise FileNotFoundError(f"the checkpoint {folder} lacks {', '.join(missing)}; choose another one")
    moments = load_file(folder / OPTIMIZER)
    torch.set_rng_state(moments.pop("rng"))
    per_parameter: dict[int, dict[str, Tensor]] = {}
    for key, value in moments.items():
        index, name = key.split(".", 1)
        per_parameter.setdefault(int(index), {})[name] = value
    current = optimizer.state_dict()
    optimizer.load_state_dict({"state": per_parameter, "param_groups": current["param_groups"]})
    return load_file(folder / ADAPTER), json.loads((folder / STATE).read_text())
