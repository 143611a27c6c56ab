"""Compares losses and adapter gradients with TRL's, in float32, for every loss that both define the same way.

Where TRL's default constants differ from a paper, or its losses do, the settings here are the paper's; what differs is
said in the README. Log-probs of the older policy are made up (within 0.4 nats), so that clips and caps have work.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from bench.train.workers import ours, theirs

_LENGTH = 16
# What each is called by us and by TRL.
SAME: dict[str, tuple[dict[str, Any], dict[str, Any]]] = {
    "cross_entropy": ({"name": "cross_entropy"}, {"sft": True}),
    "cispo": ({"name": "cispo", "clip_high": 1.2}, {"loss_type": "cispo", "epsilon_high": 1.2}),
    "dapo": ({"name": "dapo"}, {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28}),
    "ppo": ({"name": "ppo"}, {"loss_type": "dapo", "epsilon": 0.2}),
    "grpo": ({"name": "grpo"}, {"loss_type": "grpo", "epsilon": 0.2}),
    "dr_grpo": (
        {"name": "dr_grpo", "constant_length": _LENGTH},
        {"loss_type": "dr_grpo", "epsilon": 0.2, "max_completion_length": _LENGTH},
    ),
    "gspo": (
        {"name": "gspo", "clip_low": 0.05, "clip_high": 0.05},
        {"loss_type": "grpo", "importance_sampling_level": "sequence", "epsilon": 0.05},
    ),
    "importance_sampling": ({"name": "importance_sampling"}, {"loss_type": "cispo", "epsilon_high": 1e9}),
    "grpo with KL": ({"name": "grpo", "beta": 0.04}, {"loss_type": "grpo", "epsilon": 0.2, "beta": 0.04}),
    "dapo at temperature 1.2": (
        {"name": "dapo", "temperature": 1.2},
        {"loss_type": "dapo", "epsilon": 0.2, "epsilon_high": 0.28, "temperature": 1.2},
    ),
}


def compare(setup: dict[str, Any], folder: Path) -> dict[str, Any]:
    """The gaps, loss by loss."""
    exact = setup | {"dtype": "float32"}
    found: dict[str, Any] = {}
    with ours(exact) as our, theirs(exact) as their:
        our.ask("parity_setup", folder=str(folder))
        for name, (spec, settings) in SAME.items():
            out = str(folder / "gradients.safetensors")
            said = their.ask("parity", folder=str(folder), out=out, **settings)
            sft = settings.get("sft", False)
            found[name] = our.ask("parity", spec=spec, theirs=out, loss=said["loss"], sft=sft)
            found[name].pop("peak_mb")
    return {"parity": found}
