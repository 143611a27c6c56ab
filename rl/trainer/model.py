"""Owns loading a decoder and putting an adapter on it; refuses models whose attention a prefix tree cannot express."""

from pathlib import Path
from typing import Any

import torch
from peft import LoraConfig, get_peft_model
from transformers import AutoConfig, AutoModelForCausalLM

from rl.trainer import attention

# Settings that change attention or logits in ways the tree attention or the head here do not compute.
_FOREIGN = ("attn_logit_softcapping", "final_logit_softcapping", "logit_scale", "logits_scaling", "lm_head_multiplier")


class UnsupportedModelError(ValueError):
    """The model computes something that training here does not; the message names it."""


def check_config(config: Any) -> None:
    """Raise UnsupportedModelError unless every layer is plain or sliding-window attention and logits are h·W."""
    kinds = set(getattr(config, "layer_types", None) or []) - {"full_attention", "sliding_attention"}
    if kinds:
        raise UnsupportedModelError(
            f"{config.model_type} has layers of kind {', '.join(sorted(kinds))}: shared prefixes need attention"
        )
    for name in _FOREIGN:
        if getattr(config, name, None) not in (None, 1, 1.0):
            raise UnsupportedModelError(f"{config.model_type} sets {name}, which training here does not compute")


def load_adapted(model_dir: Path, dtype: torch.dtype, device: str, *, rank: int, alpha: int, seed: int) -> Any:
    """The model in `dtype`, frozen, with fp32 LoRA matrices on every linear layer but the output head."""
    config = AutoConfig.from_pretrained(model_dir)
    check_config(config)
    model = AutoModelForCausalLM.from_pretrained(model_dir, dtype=dtype, attn_implementation=attention.NAME)
    if model.get_output_embeddings().bias is not None:
        raise UnsupportedModelError(
            f"{config.model_type} has a bias on its output head, which training here leaves out"
        )
    model.requires_grad_(False)
    torch.manual_seed(seed)
    lora = LoraConfig(r=rank, lora_alpha=alpha, lora_dropout=0.0, target_modules="all-linear", task_type="CAUSAL_LM")
    return get_peft_model(model, lora, autocast_adapter_dtype=True).to(device).train()
