"""Owns the supervised phases: `sft`, the short warm start, and `sft_all`, the honest rival.

`sft_all` learns from the same calls until exact agreement with the teacher on validation has stopped rising. Both
start from the base model and keep the checkpoint with the best agreement. The rival is the warm start, carried on.
"""

from __future__ import annotations

import math
import time
from collections.abc import Sequence
from typing import Literal

from distill import inspection
from distill.answers import agreement, answer, references
from distill.batches import batch_of
from distill.context import RunContext, StepResult
from distill.drifting import drift_metrics
from distill.lab import Lab
from gateway.models import DatasetRow
from gateway.runs.progress import SequenceRecord
from rl.trainer import Trainer
from rl.trainer.rates import decayed, warmed_up
from rl.types import Datum, LossSpec

WARMUP_STEPS = 5
DECAY_STEPS = 30
"""At a constant rate the policy swings from one validation to the next, too sure of itself each time to explore."""


def run(ctx: RunContext, lab: Lab, phase: Literal["sft", "sft_all"]) -> None:
    """Every step: a batch, its gradient, an optimizer step; now and then a look at validation."""
    config = ctx.config
    planned = config.warm_start_steps if phase == "sft" else config.sft_all_steps
    if phase == "sft_all":
        _take_over_warm_start(ctx, planned)
    saved = ctx.saved(phase)
    best, stale = saved.memory.get("best", -1.0), saved.memory.get("stale", 0)
    # How likely the teacher's answer was when an example was last seen: where GRPO's curriculum begins.
    probability: dict[str, float] = saved.memory.get("probability", {})
    if saved.step >= planned or stale >= config.sft_patience:
        return

    lab.start_sampler()
    rows = lab.train_rows()
    data = [lab.renderer.example(row.messages, row.target, row.tools) for row in rows]
    shown = lab.validation_rows()
    expected = references(lab.renderer, shown)
    trainer = lab.new_trainer()
    if saved.folder is not None:
        trainer.load(saved.folder)

    for step in range(saved.step + 1, planned + 1):
        began = time.monotonic()
        places = batch_of(str(config.seed), step, len(data), config.sft_batch)
        looked_at = step % config.sft_validate_every == 0 or step == planned
        seen = _seen(lab, trainer, rows, data, places) if looked_at or step == 1 else []
        stats = trainer.forward_backward([data[place] for place in places], LossSpec("cross_entropy"))
        for place, logprob in zip(places, stats.sequence_logprobs, strict=True):
            probability[str(rows[place].id)] = round(math.exp(logprob), 4)
        rate = decayed(warmed_up(lab.sft_rate(trainer), step - 1, WARMUP_STEPS), step - 1, DECAY_STEPS)
        norm = trainer.optim_step(rate)
        metrics = {
            "loss": stats.loss,
            "grad_norm": norm,
            "lr": rate,
            "trained_tokens": float(stats.trained_tokens),
            "packed_tokens": float(stats.packed_tokens),
            "plain_tokens": float(stats.plain_tokens),
        }
        validation, better = None, False
        if looked_at:
            lab.show(trainer)
            agreed = agreement(answer(lab, shown).texts, expected)
            better = agreed > best
            # Only the rival's own validations count towards a plateau; the warm start has none.
            best, stale = max(best, agreed), 0 if better or phase == "sft" else stale + 1
            validation = {"agreement": agreed, "n": float(len(shown))}
            metrics["validation_agreement"] = agreed
        if step == planned or stale >= config.sft_patience:
            metrics |= drift_metrics(lab, trainer, None)
        result = StepResult(metrics, time.monotonic() - began, validation=validation, best=better, sequences=seen)
        ctx.finish_step(phase, step, result, trainer.save, {"best": best, "stale": stale, "probability": probability})
        if stale >= config.sft_patience:
            ctx.event("plateau", f"Agreement on validation stopped at {best:.1%} by step {step}: {phase} ends.")
            return
    if phase == "sft_all":
        ctx.event("no_plateau", f"{phase} ends at its {planned} steps before a plateau: `sft_all_steps` allows more.")


def _seen(
    lab: Lab, trainer: Trainer, rows: Sequence[DatasetRow], data: Sequence[Datum], places: Sequence[int]
) -> list[SequenceRecord]:
    """The step's first examples for people to look at, before the step changes what the model thinks of them."""
    first = places[: inspection.SUPERVISED]
    logprobs = trainer.logprobs([data[place] for place in first])
    return inspection.supervised(lab.renderer, [(rows[place].id, data[place]) for place in first], logprobs)


def _take_over_warm_start(ctx: RunContext, planned: int) -> None:
    """The rival's first steps would be the warm start's again: same data, order, rate, optimizer. Once is enough."""
    warm = ctx.last_step("sft")
    if 0 < warm <= planned and ctx.last_step("sft_all") == 0:
        ctx.take_over("sft", "sft_all")
        ctx.event("shared", f"The first {warm} steps of sft_all are the warm start's: they are not done twice.")
