"""Owns what of a step's batch is kept for people to look at: a few sequences, token by token. Must not train.

The gateway has no tokenizer: what is to be shown is made here, and stored with the step it belongs to.
"""

from __future__ import annotations

from collections.abc import Sequence
from uuid import UUID

from gateway.runs.progress import SequenceRecord
from rl.grpo import GroupReport
from rl.render import Renderer
from rl.types import Datum

SUPERVISED = 2
"""Examples that a supervised step shows."""
GROUPS = 2
"""Groups of which a GRPO step shows the best and the worst completion."""
LONGEST = 2_000
"""Tokens that one sequence may show; of a longer one the beginning is left out."""


def supervised(
    renderer: Renderer, examples: Sequence[tuple[UUID, Datum]], logprobs: Sequence[Sequence[float]]
) -> list[SequenceRecord]:
    """Examples as the step saw them, with the log-probs (nats) that their tokens had before it."""
    return [
        _record(renderer, datum, values, index=index, row_id=row_id)
        for index, ((row_id, datum), values) in enumerate(zip(examples, logprobs, strict=True))
    ]


def rollouts(renderer: Renderer, groups: Sequence[GroupReport]) -> list[SequenceRecord]:
    """The best and the worst trained completion of the first groups that taught something, with the sampler's
    log-probs."""
    found: list[SequenceRecord] = []
    for number, group in [(n, group) for n, group in enumerate(groups) if group.kept][:GROUPS]:
        ranked = sorted((one for one in group.rollouts if one.datum is not None), key=lambda one: one.advantage or 0.0)
        for rollout in [*ranked[-1:], *ranked[:-1][:1]]:
            assert rollout.datum is not None, "only those are ranked"
            record = _record(
                renderer, rollout.datum, rollout.datum.sampler_logprobs or [], index=len(found),
                row_id=UUID(group.key), group=number, reward=rollout.reward, advantage=rollout.advantage,
            )  # fmt: skip
            found.append(record)
    return found


def _record(
    renderer: Renderer,
    datum: Datum,
    logprobs: Sequence[float],
    *,
    index: int,
    row_id: UUID,
    group: int | None = None,
    reward: float | None = None,
    advantage: float | None = None,
) -> SequenceRecord:
    pieces = renderer.pieces(datum.tokens)
    tokens = [
        [
            int(token),
            pieces[place],
            bool(datum.weights[place]),
            renderer.is_special(token),
            round(float(logprobs[place]), 4) if logprobs and datum.weights[place] else None,
        ]
        for place, token in enumerate(datum.tokens)
    ]
    left_out = max(0, len(tokens) - LONGEST)
    return SequenceRecord(index, row_id, tokens[left_out:], left_out, group, reward, advantage)
