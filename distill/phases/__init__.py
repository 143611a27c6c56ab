"""One module a phase of a run, each reading top to bottom: freeze, sft (also sft_all), grpo, evaluate."""

from __future__ import annotations

from distill.context import RunContext
from distill.lab import Lab
from distill.phases import evaluate, freeze, grpo, sft
from gateway.runs.schemas import Phase


def run(phase: Phase, ctx: RunContext, lab: Lab) -> None:
    """Runs one phase from its last finished step to its end."""
    match phase:
        case "freeze":
            freeze.run(ctx, lab)
        case "sft" | "sft_all":
            sft.run(ctx, lab, phase)
        case "grpo":
            grpo.run(ctx, lab)
        case "evaluate":
            evaluate.run(ctx, lab)
        case "done":
            return
