"""Owns what a learning phase says at its end about how far it has moved the model. Must not change a weight.

The phase's own way is measured from where it began (GRPO: the warm start, the others: the base model), on the teacher's
answers to validation prompts and on general exchanges; what is forgotten is always measured against the base model.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from distill.general import EXCHANGES
from distill.lab import Lab
from rl.render import RenderError
from rl.trainer import Trainer
from rl.types import Datum

TASK_EXAMPLES = 16


def drift_metrics(lab: Lab, trainer: Trainer, since: Path | None) -> dict[str, float]:
    """A step's figures under the names that the run's page looks for; none where nothing can be measured on."""
    task, general = _task_probe(lab), _general_probe(lab)
    if not task or not general:
        return {}
    own = trainer.drift(task, since)
    away = trainer.drift(general, since)
    base = trainer.drift(general) if since else away
    return {
        "drift_weights": own.weight_ratio,
        "drift_moved": own.moved_share,
        "drift_kl": away.kl,
        "forgotten_kl": base.kl,
        "forgotten": base.forgotten,
    }


def _task_probe(lab: Lab) -> list[Datum]:
    found: list[Datum] = []
    for row in lab.validation_rows()[:TASK_EXAMPLES]:
        with suppress(RenderError):
            found.append(lab.renderer.example(row.messages, row.target, row.tools))
    return found


def _general_probe(lab: Lab) -> list[Datum]:
    found: list[Datum] = []
    for asked, answered in EXCHANGES:
        with suppress(RenderError):
            found.append(lab.renderer.example([{"role": "user", "content": asked}], answered))
    return found
