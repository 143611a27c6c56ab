"""Owns what a run is asked to do: its configuration, and the bars declared before looking. Must not read a table."""

from __future__ import annotations

from decimal import Decimal
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, TypeAdapter, ValidationError, model_validator

from gateway.core.errors import StepdownError

Phase = Literal["freeze", "sft", "grpo", "sft_all", "evaluate", "done"]
PHASES: tuple[Phase, ...] = ("freeze", "sft", "grpo", "sft_all", "evaluate", "done")
CANDIDATES = ("base", "sft", "sft_all", "grpo")
LOSSES = Literal["cispo", "dapo", "ppo", "gspo", "grpo", "dr_grpo", "importance_sampling"]


class Strict(BaseModel):
    """Base of what people write: a field we do not know is a mistake worth telling."""

    model_config = ConfigDict(extra="forbid")


class SplitShares(Strict):
    """How the inputs divide. An input's place depends on its hash alone, so it is the same in every version."""

    train: float = Field(default=0.55, gt=0, lt=1, description="Share of inputs to learn from.")
    validation: float = Field(
        default=0.10, gt=0, lt=1, description="Share for choosing checkpoints and finding the plateau."
    )
    test: float = Field(default=0.35, gt=0, lt=1, description="Share opened by the evaluation alone.")

    @model_validator(mode="after")
    def _sum_to_one(self) -> SplitShares:
        if abs(self.train + self.validation + self.test - 1) > 1e-6:
            raise ValueError(f"the shares sum to {self.train + self.validation + self.test:g}, they must sum to 1")
        return self


class RunConfig(Strict):
    """Everything that may be set about a run. The defaults suit a narrow task and a small base model."""

    seed: int = Field(default=17, description="Orders the examples and seeds the sampling.")
    split: SplitShares = Field(default=SplitShares(), description="Split of a task's first dataset.")
    min_train: int = Field(default=60, ge=1, description="Fewest distinct training examples to start with.")
    min_validation: int = Field(default=10, ge=1, description="Fewest distinct validation examples to start with.")
    min_test: int = Field(default=30, ge=1, description="Fewest distinct test examples that evidence can rest on.")

    lora_rank: int = Field(default=16, ge=1, le=256, description="Rank of the adapter.")
    lora_alpha: int = Field(default=32, ge=1, description="Scale of the adapter; twice the rank is usual.")
    micro_tokens: int = Field(
        default=2048, ge=64, description="Tokens computed at once, shared ones counted once; memory grows with it."
    )
    recompute: bool = Field(
        default=False,
        description="Keep only what went into each layer and compute it again for its gradient: far less memory, "
        "about a third more time, the same gradients.",
    )
    sft_lr: float | None = Field(
        default=None, gt=0, description="Learning rate of both supervised phases; unset: from the model's width."
    )
    grpo_lr: float | None = Field(
        default=None, gt=0, description="Learning rate of GRPO; unset: three eighths of the supervised one."
    )
    warm_start_steps: int = Field(
        default=120, ge=0, le=100_000, description="Optimizer steps of the supervised warm start."
    )
    sft_batch: int = Field(default=16, ge=1, description="Examples per supervised step.")
    sft_all_steps: int = Field(
        default=240, ge=0, le=1_000_000, description="Most steps of the honest rival, SFT on everything."
    )
    sft_validate_every: int = Field(default=30, ge=1, description="Steps between validations of a supervised phase.")
    sft_patience: int = Field(
        default=2,
        ge=1,
        description="Validations without a better agreement after which SFT on everything has its plateau.",
    )

    grpo_steps: int = Field(default=30, ge=0, le=100_000, description="GRPO steps.")
    grpo_prompts: int = Field(default=16, ge=1, description="Prompts per GRPO step.")
    grpo_group: int = Field(
        default=8, ge=2, le=64, description="Answers sampled for each prompt: the group the judge compares."
    )
    grpo_refill: int = Field(
        default=0,
        ge=0,
        description="Most further prompts of a step, asked while fewer than `grpo_prompts` groups differ in reward.",
    )
    grpo_unlabelled: bool = Field(
        default=True,
        description="Practise also on captured prompts without an answer to learn from: the judge needs none.",
    )
    grpo_temperature: float = Field(
        default=1.2,
        gt=0,
        le=2,
        description="Temperature that answers are sampled and trained at: above 1 finds answers sooner that are "
        "hardly ever given, right ones among them.",
    )
    grpo_validate_every: int = Field(default=10, ge=1, description="Steps between validations of GRPO.")
    loss: LOSSES = Field(default="cispo", description="Policy loss.")
    normalise: Literal["sequence_mean"] | None = Field(
        default=None, description="`sequence_mean`: every answer weighs the same, however long. Unset: the loss's own."
    )
    advantage: Literal["mean", "group_std", "batch_std", "rloo"] = Field(
        default="mean", description="What is subtracted from a reward, and what it is divided by."
    )
    kl_beta: float = Field(
        default=0.0, ge=0, description="Weight of the KL to the reference; 0 is off and costs nothing."
    )
    kl_reference: Literal["warm_start", "base"] = Field(
        default="warm_start", description="What the KL keeps GRPO near: where it started, or the base model."
    )
    judge_shuffles: int = Field(default=1, ge=1, le=8, description="Times a group is judged, each in another order.")

    max_new_tokens: int | None = Field(
        default=None, ge=1, description="Longest answer; unset: the training answers' 99th percentile and a margin."
    )
    validation_rows: int = Field(default=100, ge=1, description="Validation examples that checkpoints are chosen on.")
    judge_concurrency: int = Field(default=16, ge=1, le=256, description="Judge calls under way at once.")
    judge_spend_cap_usd: Decimal = Field(
        default=Decimal(20), ge=0, description="The run pauses when its judge has cost this much."
    )
    judge_call_cap: int = Field(
        default=20_000, ge=0, description="The run pauses after this many judge calls, whatever their price."
    )


class JudgedBar(Strict):
    """Non-inferior by judged pairs: the lower end of the mean (win 1, tie ½, loss 0) is at least ½ − δ."""

    kind: Literal["judged"] = "judged"
    name: str = "judged"
    delta: float = Field(default=0.05, ge=0, lt=0.5)


class AgreementBar(Strict):
    """The lower end of exact agreement with the teacher's answers is at least `bar`."""

    kind: Literal["agreement"] = "agreement"
    name: str = "agreement"
    bar: float = Field(ge=0, le=1)


class ExternalBar(Strict):
    """The lower end of the share right by your own scorer, posted after the evaluation, is at least `bar`."""

    kind: Literal["external"] = "external"
    name: str = Field(min_length=1, max_length=100)
    bar: float = Field(ge=0, le=1)


Bar = Annotated[JudgedBar | AgreementBar | ExternalBar, Field(discriminator="kind")]
_BARS: TypeAdapter[list[Bar]] = TypeAdapter(list[Bar])


def parse_config(raw: dict[str, object]) -> RunConfig:
    """The configuration with defaults filled in. Raises StepdownError 422 that names the field."""
    try:
        return RunConfig.model_validate(raw)
    except ValidationError as error:
        raise _unprocessable("run_config_invalid", "config", error) from None


def parse_bars(raw: list[object] | None) -> list[Bar]:
    """The bars; none given: non-inferior by the judge. Raises StepdownError 422 that names the field."""
    if raw is None:
        return [JudgedBar()]
    try:
        bars = _BARS.validate_python(raw)
    except ValidationError as error:
        raise _unprocessable("run_bars_invalid", "bars", error) from None
    names = [bar.name for bar in bars]
    if not bars or len(set(names)) < len(names):
        raise StepdownError(
            422,
            "run_bars_invalid",
            f"A run needs at least one bar and each its own name, got {names}.",
            hint="Leave `bars` out for the default: non-inferior by the judge.",
            param="bars",
        )
    return bars


def dump_bars(bars: list[Bar]) -> list[dict[str, object]]:
    """Bars as they are stored."""
    return [bar.model_dump(mode="json") for bar in bars]


def _unprocessable(code: str, root: str, error: ValidationError) -> StepdownError:
    first = error.errors()[0]
    where = ".".join([root, *(str(part) for part in first["loc"])])
    return StepdownError(
        422, code, f"{where}: {first['msg']} (got {first['input']!r}).", hint="Correct it and send again.", param=where
    )
