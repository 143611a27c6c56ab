"""Owns the phase `grpo`: from the warm start, the judge's comparisons move the policy.

Its checkpoint is chosen on validation by judged pairs against the teacher, not by agreement with it: a student that
passes its teacher agrees with it less.
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from uuid import UUID

from distill import inspection
from distill.answers import references
from distill.context import RunContext, StepResult
from distill.drifting import drift_metrics
from distill.judging import validate
from distill.lab import Lab
from gateway.runs.progress import RolloutRecord
from rl.grpo import GroupReport, Grpo, GrpoConfig, NoVerdictError, RolloutReport, StepReport
from rl.trainer import Trainer
from rl.types import LossSpec, Prompt


def run(ctx: RunContext, lab: Lab) -> None:
    """Every step: rollouts, verdicts, a gradient; now and then a look at validation."""
    config = ctx.config
    saved = ctx.saved("grpo")
    if saved.step >= config.grpo_steps:
        return
    trainer = lab.new_trainer()
    warm = ctx.best("sft")
    if saved.folder is not None:
        trainer.load(saved.folder)
    elif warm is not None:
        trainer.start_from(warm[1])
    if config.kl_beta and config.kl_reference == "warm_start" and warm is not None:
        trainer.refer_to(warm[1])
    grpo = _loop(ctx, lab, trainer)
    if saved.folder is not None:
        grpo.load_state_dict(saved.memory["loop"])
    best = saved.memory.get("best", [-1.0, -1.0])

    for step in range(saved.step + 1, config.grpo_steps + 1):
        began = time.monotonic()
        report = _step(grpo, lab, step)
        metrics, validation, better = dict(report.metrics), None, False
        if step % config.grpo_validate_every == 0 or step == config.grpo_steps:
            grpo.push_weights()
            validation = validate(lab, lab.validation_rows())
            metrics |= {f"validation_{name}": value for name, value in validation.items()}
            found = [validation["judged"], validation["agreement"]]
            better = found > best
            best = max(best, found)
        if step == config.grpo_steps:
            metrics |= drift_metrics(lab, trainer, warm[1] if warm else None)
        result = StepResult(
            metrics,
            time.monotonic() - began,
            rollouts=_records(report.groups),
            validation=validation,
            best=better,
            sequences=inspection.rollouts(lab.renderer, report.groups),
        )
        ctx.finish_step("grpo", step, result, trainer.save, {"best": best, "loop": grpo.state_dict()})
        for alarm in report.alarms:
            ctx.event("alarm", f"Step {step}: {alarm.message}")


def _loop(ctx: RunContext, lab: Lab, trainer: Trainer) -> Grpo:
    config, rows = ctx.config, lab.train_rows()
    expected = references(lab.renderer, rows)
    prompts = [
        Prompt(str(row.id), row.messages, anchor=text, tools=row.tools)
        for row, text in zip(rows, expected, strict=True)
    ]
    prompts += [Prompt(str(row.id), row.messages, tools=row.tools) for row in lab.practice_rows]
    shape = GrpoConfig(
        weights_dir=lab.weights_dir,
        prompts_per_step=config.grpo_prompts,
        group_size=config.grpo_group,
        refill=config.grpo_refill,
        max_tokens=lab.max_new_tokens,
        lr=lab.grpo_rate(trainer),
        loss=LossSpec(config.loss, normalise=config.normalise, beta=config.kl_beta),
        scale=config.advantage,
        temperature=config.grpo_temperature,
        seed=config.seed,
    )
    probability = ctx.saved("sft").memory.get("probability", {})
    return Grpo(trainer, lab.sampler, lab.judge.groups, lab.renderer, prompts, shape, expected=probability)


def _step(grpo: Grpo, lab: Lab, step: int) -> StepReport:
    """One step, not counted where the judge was stopped by its cap: half a step's verdicts would train on a bias."""
    try:
        report = grpo.step(step)
    except NoVerdictError:
        lab.judge.require_room()
        raise
    lab.judge.require_room()
    return report


def _records(groups: Sequence[GroupReport]) -> list[RolloutRecord]:
    """Every completion of the step and each group's anchor, as rows."""
    records = []
    for number, group in enumerate(groups):
        anchor = [] if group.anchor is None else [(-1, group.anchor)]
        for index, rollout in [*anchor, *enumerate(group.rollouts)]:
            records.append(_record(number, index, group, rollout))
    return records


def _record(number: int, index: int, group: GroupReport, rollout: RolloutReport) -> RolloutRecord:
    return RolloutRecord(
        group=number,
        index=index,
        row_id=UUID(group.key),
        completion=rollout.completion,
        tokens=rollout.tokens,
        finish_reason=rollout.finish_reason,
        reward=rollout.reward,
        advantage=rollout.advantage,
        criteria=dict(rollout.criteria),
        reason=rollout.reason if group.kept or rollout.reason else group.dropped,
        kept=group.kept,
    )
