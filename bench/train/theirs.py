"""TRL's side of the bench: its `SFTTrainer` and `GRPOTrainer` as they are, run by TRL's own Python.

What is timed is an optimizer step as their loop does it (forward, backward, clipping, optimizer), from a step's begin
to its end. Not timed: loading, making datasets, and what stands for sampling: `rollout_func` hands out fixed
completions. Imports nothing of Stepdown but `wire`.
"""

from __future__ import annotations

import json
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parent))

import torch
import wire
from datasets import Dataset
from peft import LoraConfig, PeftModel
from safetensors.torch import save_file
from transformers import AutoModelForCausalLM, AutoTokenizer, TrainerCallback
from trl import GRPOConfig, GRPOTrainer, SFTConfig, SFTTrainer

RATE = 1e-4


class Clock(TrainerCallback):
    """Adds up the time from each optimizer step's begin to its end."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.steps = 0

    def on_step_begin(self, *_: Any, **__: Any) -> None:
        self.began = time.perf_counter()

    def on_step_end(self, *_: Any, **__: Any) -> None:
        self.seconds += time.perf_counter() - self.began
        self.steps += 1


class Grpo(GRPOTrainer):
    """Their trainer, with a clock on the part that is not the update."""

    not_update = 0.0

    def _generate_and_score_completions(self, inputs: Any) -> Any:
        began = time.perf_counter()
        made = super()._generate_and_score_completions(inputs)
        self.not_update += time.perf_counter() - began
        return made


class Theirs:
    """One model with a fresh adapter for each piece of work, as each of their trainers wants its own."""

    def __init__(self, setup: dict[str, Any]) -> None:
        self.setup = setup
        self.work: dict[str, Any] = json.loads(Path(setup["work"]).read_text())
        self.folder = tempfile.mkdtemp(prefix="sd-bench-trl-")
        self.tokenizer = AutoTokenizer.from_pretrained(setup["model"])
        self.model()

    def model(self, dtype: str | None = None, attention: str = "sdpa") -> Any:
        wanted = getattr(torch, dtype or self.setup["dtype"])
        return AutoModelForCausalLM.from_pretrained(self.setup["model"], dtype=wanted, attn_implementation=attention)

    def lora(self) -> LoraConfig:
        return LoraConfig(
            r=self.setup["rank"], lora_alpha=self.setup["alpha"], lora_dropout=0.0, target_modules="all-linear",
            task_type="CAUSAL_LM",
        )  # fmt: skip

    def common(self, **more: Any) -> dict[str, Any]:
        """Settings of both trainers; memory is not short here, so nothing is computed twice."""
        given = {
            "output_dir": self.folder, "seed": self.setup["seed"], "use_cpu": True, "dataloader_pin_memory": False,
            "bf16": self.setup["dtype"] == "bfloat16", "gradient_checkpointing": False, "optim": "adamw_torch_fused",
            "learning_rate": RATE, "lr_scheduler_type": "constant", "save_strategy": "no", "logging_strategy": "no",
            "report_to": "none", "disable_tqdm": True,
        }  # fmt: skip
        return given | more

    def sft(
        self,
        name: str,
        *,
        length: int = 1024,
        rows: int = 1,
        steps: int = 3,
        attention: str = "sdpa",
        dtype: str | None = None,
        **more: Any,
    ) -> dict[str, Any]:
        """Every example once, in packed rows of at most `length` tokens; `rows` × `steps` rows to an optimizer step."""
        data = self.work[name]
        clock = Clock()
        trainer = SFTTrainer(
            model=self.model(dtype, attention),
            args=SFTConfig(
                **self.common(**more), packing=True, max_length=length, per_device_train_batch_size=rows,
                gradient_accumulation_steps=steps, num_train_epochs=1,
            ),
            train_dataset=sft_dataset(data),
            processing_class=self.tokenizer,
            peft_config=self.lora(),
            callbacks=[clock],
        )  # fmt: skip
        trainer.train()
        return {"seconds": clock.seconds, "examples": len(data), "steps": clock.steps}

    def grpo(
        self,
        name: str,
        *,
        rows: int = 8,
        steps: int = 1,
        attention: str = "sdpa",
        dtype: str | None = None,
        loss: str = "cispo",
        **more: Any,
    ) -> dict[str, Any]:
        """`steps` optimizer steps over all groups, `rows` sequences at a time."""
        groups = self.work[name]
        size = len(groups[0]["completions"])
        given = {
            "prompt_ids": [group["prompt"] for group in groups for _ in range(size)],
            "completion_ids": [completion for group in groups for completion in group["completions"]],
        }
        given["logprobs"] = [[0.0] * len(ids) for ids in given["completion_ids"]]
        rewards = [reward for group in groups for reward in group["rewards"]]
        clock = Clock()
        trainer = Grpo(
            model=self.model(dtype, attention),
            reward_funcs=lambda **_: rewards,
            args=GRPOConfig(
                **self.common(**more), loss_type=loss, epsilon_high=5.0, scale_rewards="none", num_generations=size,
                per_device_train_batch_size=rows, gradient_accumulation_steps=len(rewards) // rows, max_steps=steps,
                max_completion_length=max(map(len, given["completion_ids"])), shuffle_dataset=False,
            ),
            train_dataset=Dataset.from_dict({"prompt": [str(number) for number in range(len(groups))]}),
            processing_class=self.tokenizer,
            peft_config=self.lora(),
            rollout_func=lambda *_: given,
            callbacks=[clock],
        )  # fmt: skip
        trainer.train()
        return {"seconds": (clock.seconds - trainer.not_update) / clock.steps, "steps": clock.steps}

    def parity(self, folder: str, out: str, sft: bool = False, **settings: Any) -> dict[str, Any]:
        """Loss and adapter gradients in float32 of one batch, with an adapter and rollouts that were made by ours."""
        base = self.model("float32", "eager")
        model = PeftModel.from_pretrained(base, Path(folder) / "adapter", is_trainable=True)
        loss = self._sft_loss(model) if sft else self._grpo_loss(model, Path(folder), settings)
        loss.backward()
        grads = {name: value.grad for name, value in model.named_parameters() if value.grad is not None}
        save_file(grads, out)
        return {"loss": float(loss.detach())}

    def _sft_loss(self, model: Any) -> Any:
        rows = self.work["sft_shared"][:4]
        args = SFTConfig(**self.common(bf16=False), packing=True, max_length=1024)
        trainer = SFTTrainer(
            model=model, args=args, train_dataset=sft_dataset(rows), processing_class=self.tokenizer
        )  # fmt: skip
        batch = trainer._prepare_inputs(next(iter(trainer.get_train_dataloader())))
        return trainer.compute_loss(
            trainer.model, batch, num_items_in_batch=int(sum(sum(row["weights"]) for row in rows))
        )

    def _grpo_loss(self, model: Any, folder: Path, settings: dict[str, Any]) -> Any:
        rows = json.loads((folder / "rollouts.json").read_text())
        args = GRPOConfig(
            **self.common(bf16=False), num_generations=2, per_device_train_batch_size=len(rows), max_steps=1, **settings
        )  # fmt: skip
        trainer = GRPOTrainer(
            model=model, reward_funcs=lambda **_: [], args=args, processing_class=self.tokenizer,
            train_dataset=Dataset.from_dict({"prompt": ["0"]}),
        )  # fmt: skip
        trainer.current_gradient_accumulation_steps = 1
        starts = [row["weights"].index(1.0) for row in rows]
        ends = [len(row["tokens"]) - start for row, start in zip(rows, starts, strict=True)]

        def padded(name: str, of: str) -> Any:
            values = []
            for row, start in zip(rows, starts, strict=True):
                whole = [1] * len(row["tokens"]) if name == "mask" else row[name]
                part = whole[:start] if of == "prompt" else whole[start:]
                fill = [0] * (max(starts if of == "prompt" else ends) - len(part))
                values.append(fill + part if of == "prompt" else part + fill)
            return torch.tensor(values)

        mask = padded("mask", "completion")
        return trainer._compute_loss(
            trainer.model,
            {
                "prompt_ids": padded("tokens", "prompt"), "prompt_mask": padded("mask", "prompt"),
                "completion_ids": padded("tokens", "completion"), "completion_mask": mask,
                "advantages": torch.tensor([row["advantage"] for row in rows]),
                "old_per_token_logps": padded("old_logprobs", "completion"),
                "ref_per_token_logps": padded("reference", "completion"),
                "num_items_in_batch": mask.sum(),
            },
        )  # fmt: skip


def sft_dataset(rows: list[dict[str, Any]]) -> Dataset:
    """Tokens, and labels where a token is trained."""
    labels = [
        [token if weight else -100 for token, weight in zip(row["tokens"], row["weights"], strict=True)] for row in rows
    ]
    return Dataset.from_dict({"input_ids": [row["tokens"] for row in rows], "labels": labels})


def load(setup: dict[str, Any]) -> dict[str, Any]:
    """Load the model; what can be asked."""
    theirs = Theirs(setup)
    return {"sft": theirs.sft, "grpo": theirs.grpo, "parity": theirs.parity}


if __name__ == "__main__":
    wire.serve(load)
