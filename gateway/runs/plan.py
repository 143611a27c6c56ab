"""Owns how many steps a run plans, so that progress can be shown before it happens. Pure."""

from __future__ import annotations

from gateway.runs.schemas import CANDIDATES, Phase, RunConfig


def planned_steps(config: RunConfig) -> dict[Phase, int]:
    """Steps of each phase. `sft_all` plans its most: it ends sooner at its plateau. `evaluate`: one a candidate."""
    return {
        "freeze": 1,
        "sft": config.warm_start_steps,
        "grpo": config.grpo_steps,
        "sft_all": config.sft_all_steps,
        "evaluate": len(CANDIDATES),
    }
