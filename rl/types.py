"""Owns the values that pass between renderer, sampler, judge and trainer. Holds no behaviour beyond their checks."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, Literal

LossName = Literal["cispo", "dapo", "ppo", "gspo", "grpo", "dr_grpo", "importance_sampling", "cross_entropy"]
FinishReason = Literal["stop", "length"]
TEMPLATE_ARGUMENTS: dict[str, Any] = {"enable_thinking": False}
"""What chat templates are told beside messages and tools, in training and by the engines. A narrow job is answered at
once: templates that know the switch close their thinking block before the answer begins, others ignore it."""


class MaskError(ValueError):
    """A batch whose trained tokens cannot be right: none, all, or lists of unequal length."""


@dataclass(frozen=True, slots=True)
class Datum:
    """One sequence to learn from. Every list has one entry per token.

    `weights[i]` belongs to the prediction of `tokens[i]` from all tokens before it: 0 means "context, not trained".
    `advantage` is the whole sequence's (used by the policy losses only). `sampler_logprobs` are what the sampler
    reported (of what it drew from), `old_logprobs` the trainer's own at the version that sampled (needed only if the
    trainer has moved since); both are read only where `weights` is above 0. `group` marks rollouts of one prompt.
    """

    tokens: Sequence[int]
    weights: Sequence[float]
    advantage: float = 0.0
    sampler_logprobs: Sequence[float] | None = None
    old_logprobs: Sequence[float] | None = None
    group: int = 0

    def __post_init__(self) -> None:
        size = len(self.tokens)
        if size < 2:
            raise MaskError(f"a sequence needs at least 2 tokens to predict one, got {size}")
        if len(self.weights) != size:
            raise MaskError(f"{len(self.weights)} weights for {size} tokens")
        if self.weights[0] != 0:
            raise MaskError("the first token has nothing to be predicted from: its weight must be 0")
        for name in ("sampler_logprobs", "old_logprobs"):
            values = getattr(self, name)
            if values is not None and len(values) != size:
                raise MaskError(f"{len(values)} {name} for {size} tokens")


@dataclass(frozen=True, slots=True)
class LossSpec:
    """Which loss, and its constants (defaults are the papers'; see rl.losses for the formulas).

    `normalise` None keeps the loss's own normaliser; `sequence_mean` makes every sequence weigh the same.
    `constant_length` is dr_grpo's (tokens). `denominator` overrides the normaliser where one optimizer step is
    spread over several `forward_backward` calls. `beta` weighs the KL to the reference (0: off, costs nothing).
    `temperature` is the one that the sequences were sampled at: the policy that is trained is softmax(logits / it).
    """

    name: LossName = "cispo"
    clip_low: float | None = None
    clip_high: float | None = None
    normalise: Literal["sequence_mean"] | None = None
    constant_length: int = 256
    mismatch_cap: float = 2.0
    denominator: float | None = None
    beta: float = 0.0
    temperature: float = 1.0


@dataclass(frozen=True, slots=True)
class StepStats:
    """What one `forward_backward` did. Log-probs in nats; `seconds` wall clock.

    `sequence_logprobs` has one sum over the trained tokens for each sequence, in the batch's order.
    """

    loss: float
    sequences: int
    trained_tokens: int
    packed_tokens: int
    plain_tokens: int
    micro_batches: int
    mismatch_kl: float | None = None
    entropy: float = 0.0
    clipped_share: float = 0.0
    seconds: float = 0.0
    sequence_logprobs: tuple[float, ...] = ()


@dataclass(frozen=True, slots=True)
class SamplingParams:
    """How to sample. For training, top-p and top-k stay off: log-probs are those of softmax(logits / temperature)."""

    max_tokens: int = 256
    temperature: float = 1.0
    top_p: float = 1.0
    top_k: int = -1
    seed: int | None = None
    stop_token_ids: tuple[int, ...] = ()


@dataclass(frozen=True, slots=True)
class Sample:
    """One completion as the sampler drew it; `logprobs` has one entry per token, `version` is the weights' version."""

    tokens: tuple[int, ...]
    logprobs: tuple[float, ...]
    finish_reason: FinishReason
    version: int


@dataclass(frozen=True, slots=True)
class Drift:
    """How far training has moved the model: ‖ΔW‖/‖W‖, the share of tokens whose log-prob moved > 0.1, KL(then ‖ now) in
    nats a place, and the nats a token by which what was likely then has become less likely."""

    weight_ratio: float
    moved_share: float
    kl: float
    forgotten: float


@dataclass(frozen=True, slots=True)
class Prompt:
    """One thing to practise on: what the app asked (`messages`), and the teacher's captured answer, if there is one.

    `task` tells the jobs of a run apart that teaches several at once.
    """

    key: str
    messages: Sequence[dict[str, object]]
    anchor: str | None = None
    tools: Sequence[dict[str, object]] | None = None
    tags: dict[str, str] = field(default_factory=dict)
    task: str = ""
