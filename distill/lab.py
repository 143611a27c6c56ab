"""Owns the heavy things of a trainer process, each made when it is first needed: renderer, policy, sampler, judge.

Must not know the order of phases.
"""

from __future__ import annotations

import json
import math
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property
from uuid import UUID

from sqlalchemy.orm import Session

from distill import trainers
from distill.answers import longest_answer, target_tokens
from distill.context import RunContext
from distill.judging import RunJudge
from distill.outcomes import Hopeless
from gateway.core.settings import settings
from gateway.datasets import service as datasets
from gateway.models import DatasetRow, Run
from rl.render import Renderer, RenderError
from rl.rollout.base import Sampler
from rl.trainer import Trainer, TrainerSpec
from rl.trainer.rates import rl_learning_rate, sft_learning_rate

CONTEXT_STEP = 512
ABOVE_STEPS = 1_000_000_000
"""GRPO numbers the sampler's weights by its steps; what is shown otherwise has numbers that no step count reaches."""


class Lab:
    """What a run's phases work with. Raises Hopeless where the base model is not there."""

    def __init__(self, ctx: RunContext) -> None:
        if not (ctx.base_dir / "config.json").is_file():
            raise Hopeless(
                f"There is no base model in {ctx.base_dir}: `make setup` puts Stepdown's own there, any other is a "
                "Hugging Face model's folder. Put it there, then resume the run."
            )
        self._ctx = ctx
        self._shown = ABOVE_STEPS
        self.weights_dir = trainers.workplace(ctx.lease) / "weights"

    @cached_property
    def renderer(self) -> Renderer:
        """The base model's one renderer."""
        return Renderer(self._ctx.base_dir)

    @cached_property
    def judge(self) -> RunJudge:
        """The run's judge."""
        return RunJudge(self._ctx)

    @cached_property
    def sampler(self) -> Sampler:
        """The trainer's own sampler: an engine beside this process, or, as a setting, this process itself."""
        if settings().sampler == "local":
            from rl.rollout.local import LocalSampler

            return LocalSampler(self._ctx.base_dir, seed=self._ctx.config.seed)
        from rl.rollout.vllm import VllmSampler

        return VllmSampler(
            self._ctx.base_dir,
            settings().logs_dir / f"run-{self._ctx.run_id}.engine.log",
            threads=settings().vllm_threads,
            max_model_len=self.context_length,
            on_restart=lambda why: self._ctx.event("sampler_restarted", f"The sampler starts again: {why}."),
        )

    def train_rows(self) -> Sequence[DatasetRow]:
        """What may be learned from."""
        return self._train

    @cached_property
    def practice_rows(self) -> Sequence[DatasetRow]:
        """Prompts of the train split without an answer to learn from, as far as they fit the model and the sampler."""
        found = []
        for row in self._rows(datasets.practice_rows) if self._ctx.config.grpo_unlabelled else []:
            with suppress(RenderError):
                if len(self.renderer.prompt(row.messages, row.tools)) + self.max_new_tokens <= self.context_length:
                    found.append(row)
        return found

    def validation_rows(self) -> Sequence[DatasetRow]:
        """What checkpoints of a phase are chosen on: the same rows each time."""
        return self.whole_validation[: self._ctx.config.validation_rows]

    @cached_property
    def max_new_tokens(self) -> int:
        """The longest answer that is sampled, served and judged."""
        lengths = [len(target_tokens(self.renderer, row)) for row in self._train]
        return self._ctx.config.max_new_tokens or longest_answer(lengths)

    @cached_property
    def context_length(self) -> int:
        """Tokens of prompt and answer that the sampler makes room for: half as much again as training needs."""
        longest = max(len(self.renderer.prompt(row.messages, row.tools)) for row in self._train)
        wanted = -(-(longest * 3 // 2 + self.max_new_tokens) // CONTEXT_STEP) * CONTEXT_STEP
        most = self.renderer.max_context or wanted
        return min(max(wanted, 2048), most)

    def new_trainer(self) -> Trainer:
        """The base model with a fresh adapter."""
        config = self._ctx.config
        spec = TrainerSpec(
            rank=config.lora_rank,
            alpha=config.lora_alpha,
            seed=config.seed,
            micro_tokens=config.micro_tokens,
            recompute=config.recompute,
        )
        return Trainer(self._ctx.base_dir, spec)

    def sft_rate(self, trainer: Trainer) -> float:
        """Learning rate of the supervised phases."""
        return self._ctx.config.sft_lr or sft_learning_rate(trainer.hidden_size, self._family)

    def grpo_rate(self, trainer: Trainer) -> float:
        """Learning rate of GRPO."""
        return self._ctx.config.grpo_lr or rl_learning_rate(trainer.hidden_size, self._family)

    def start_sampler(self) -> None:
        """Starts the sampler's engine, and does not wait: it gets ready beside the first steps of training."""
        _ = self.sampler

    def show(self, trainer: Trainer) -> None:
        """Gives the trainer's present weights to the sampler."""
        self._shown += 1
        folder = self.weights_dir / f"weights-{self._shown}"
        trainer.export_merged(folder)
        self.sampler.push(folder, self._shown)
        for older in self.weights_dir.iterdir():
            if older != folder:  # the sampler starts from the latest again, should its engine die
                shutil.rmtree(older, ignore_errors=True)

    def close(self) -> None:
        """Ends the sampler's engine and the judge's connections."""
        made = vars(self)
        for name in ("sampler", "judge"):
            if name in made:
                made[name].close()

    @cached_property
    def _family(self) -> str:
        return str(json.loads((self._ctx.base_dir / "config.json").read_text()).get("model_type", "llama"))

    @cached_property
    def _train(self) -> Sequence[DatasetRow]:
        most = self.renderer.max_context or math.inf
        fitting, refused, too_long = [], [], 0
        for row in self._rows(datasets.train_rows):
            try:
                size = len(self.renderer.example(row.messages, row.target, row.tools).tokens)
            except RenderError as error:
                refused.append(str(error))
                continue
            too_long += size > most
            if size <= most:
                fitting.append(row)
        if refused:
            self._ctx.event("unrenderable", f"{len(refused)} examples are left out; the first because {refused[0]}.")
        if too_long:
            self._ctx.event("too_long", f"{too_long} examples are longer than the model can read.")
        if not fitting:
            raise Hopeless(f"No training example can be put before the base model: {(refused or ['too long'])[0]}.")
        return fitting

    @cached_property
    def whole_validation(self) -> Sequence[DatasetRow]:
        """What the choice between candidates goes by, once for each of them."""
        return self._rows(datasets.validation_rows)

    def _rows(self, read: Callable[[Session, UUID, UUID], Sequence[DatasetRow]]) -> Sequence[DatasetRow]:
        def query(session: Session, run: Run) -> Sequence[DatasetRow]:
            assert run.dataset_version_id is not None, "freeze has set it"
            return read(session, run.project_id, run.dataset_version_id)

        return self._ctx.commit(query)
