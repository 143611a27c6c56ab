"""Owns getting answers from the current weights and comparing them with the teacher's. Must not ask a judge."""

from __future__ import annotations

import json
import math
import time
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

from gateway.models import DatasetRow
from rl.render import Renderer, RenderError
from rl.types import SamplingParams

if TYPE_CHECKING:
    from distill.lab import Lab


@dataclass(frozen=True)
class Answers:
    """One text per row, in the rows' order, and what they took: sampled tokens and seconds of the engine."""

    texts: list[str]
    tokens: int
    seconds: float


def answer(lab: Lab, rows: Sequence[DatasetRow]) -> Answers:
    """The current weights' answers at temperature 0; "" for a prompt that is too long or cannot be rendered."""
    room = lab.context_length - lab.max_new_tokens
    prompts = [_prompt(lab.renderer, row) for row in rows]
    asked = [place for place, prompt in enumerate(prompts) if 0 < len(prompt) <= room]
    params = SamplingParams(
        max_tokens=lab.max_new_tokens, temperature=0.0, stop_token_ids=tuple(sorted(lab.renderer.eos_ids))
    )
    began = time.monotonic()
    samples = lab.sampler.sample([prompts[place] for place in asked], 1, params)
    seconds = time.monotonic() - began
    texts = [""] * len(rows)
    for place, group in zip(asked, samples, strict=True):
        texts[place] = lab.renderer.decode(group[0].tokens)
    return Answers(texts, sum(len(group[0].tokens) for group in samples), seconds)


def _prompt(renderer: Renderer, row: DatasetRow) -> list[int]:
    try:
        return renderer.prompt(row.messages, row.tools)
    except RenderError:
        return []  # nor will the student be given it by the gateway: the engine refuses it too


def references(renderer: Renderer, rows: Sequence[DatasetRow]) -> list[str]:
    """The teacher's answers as the student would have to write them; as they are where it could not write them."""
    return [_reference(renderer, row) for row in rows]


def _reference(renderer: Renderer, row: DatasetRow) -> str:
    try:
        return renderer.decode(target_tokens(renderer, row))
    except RenderError:
        return str(row.target.get("content") or json.dumps(row.target.get("tool_calls")))


def target_tokens(renderer: Renderer, row: DatasetRow) -> list[int]:
    """The tokens of a row's target, the end of the turn included."""
    datum = renderer.example(row.messages, row.target, row.tools)
    return [token for token, weight in zip(datum.tokens, datum.weights, strict=True) if weight > 0]


def longest_answer(lengths: Sequence[int]) -> int:
    """Tokens that an answer may have: the 99th percentile of the teacher's, a quarter more, and a little."""
    ordered = sorted(lengths)
    percentile = ordered[min(len(ordered) - 1, math.ceil(0.99 * len(ordered)) - 1)]
    return math.ceil(percentile * 1.25) + 8


def same(answered: str, reference: str) -> bool:
    """Whether two answers are the same: as JSON values where both are JSON, else as text without outer space."""
    try:
        return _canonical(answered) == _canonical(reference)
    except ValueError:
        return answered.strip() == reference.strip()


def _canonical(text: str) -> str:
    # Text, not values: in Python True equals 1.
    return json.dumps(json.loads(text), sort_keys=True)


def agreement(answered: Sequence[str], expected: Sequence[str]) -> float:
    """Share of answers that are the teacher's."""
    return sum(same(*pair) for pair in zip(answered, expected, strict=True)) / len(expected) if expected else 0.0
