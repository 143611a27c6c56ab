"""Tree gradients are those of separate rows in any decoder: Llama, Qwen and SmolLM shapes, tied and untied, bf16, flex.

The other side is plain Hugging Face: the merged weights, its own attention, one row at a time, torch's autograd. The
gradient of an adapter's A and B follows from that of the merged weight: dB = s·dW·Aᵀ, dA = s·Bᵀ·dW.
"""

from pathlib import Path

import pytest
import torch
from torch import Tensor
from transformers import (
    AutoModelForCausalLM,
    LlamaConfig,
    MistralConfig,
    PretrainedConfig,
    Qwen2Config,
    Qwen3Config,
    SmolLM3Config,
)
from transformers.models.llama.modeling_llama import LlamaRMSNorm

from rl.pack import pack
from rl.trainer import Trainer, TrainerSpec, UnsupportedModelError
from rl.trainer.attention import attention_tree
from rl.trainer.blocked import blocked_tree
from rl.trainer.flex import FlexTree, tree_mask
from rl.trainer.norm import slim_norms
from rl.types import Datum, LossSpec
from tests.rl.test_pack import FP32, batch, trained

SHAPE = {
    "vocab_size": 262,
    "hidden_size": 32,
    "intermediate_size": 48,
    "num_hidden_layers": 4,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 512,
    "initializer_range": 0.15,
    "pad_token_id": 0,
    "bos_token_id": None,
    "eos_token_id": 1,
}
CONFIGS = {
    "llama": LlamaConfig(**SHAPE, tie_word_embeddings=True, rope_theta=100_000.0),
    "llama untied": LlamaConfig(**SHAPE, tie_word_embeddings=False),
    "qwen2": Qwen2Config(**SHAPE, tie_word_embeddings=True),
    "qwen2 untied": Qwen2Config(**SHAPE, tie_word_embeddings=False),
    "qwen3": Qwen3Config(**SHAPE, tie_word_embeddings=True, head_dim=16),
    "qwen3 untied": Qwen3Config(**SHAPE, tie_word_embeddings=False, head_dim=16),
    "smollm3": SmolLM3Config(**SHAPE, tie_word_embeddings=True),  # every fourth layer knows no positions
    "mistral": MistralConfig(**SHAPE, tie_word_embeddings=False, sliding_window=9),
}


def make(folder: Path, config: PretrainedConfig) -> Path:
    torch.manual_seed(0)
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    return folder


def separate_rows(trainer: Trainer, folder: Path, data: list[Datum]) -> tuple[float, dict[str, Tensor]]:
    """Loss and adapter gradients of cross-entropy by a plain model, one row after the other."""
    trainer.export_merged(folder)
    plain = AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32, attn_implementation="eager")
    divisor = sum(sum(datum.weights) for datum in data)
    total = 0.0
    for datum in data:
        logprobs = plain(torch.tensor([list(datum.tokens)])).logits[0].log_softmax(-1)
        picked = logprobs[torch.arange(len(datum.tokens) - 1), torch.tensor(list(datum.tokens)[1:])]
        loss = -(picked * torch.tensor(list(datum.weights)[1:])).sum() / divisor
        loss.backward()
        total += float(loss.detach())
    weights = dict(plain.named_parameters())
    found = {}
    for layer in trainer.layers:
        pull = weights[layer.name.removeprefix("base_model.model.") + ".weight"].grad
        assert pull is not None
        found[f"{layer.name}.lora_A.default.weight"] = layer.scale * layer.b.T @ pull
        found[f"{layer.name}.lora_B.default.weight"] = layer.scale * pull @ layer.a.T
    return total, found


@pytest.mark.parametrize("name", CONFIGS)
def test_tree_gradients_are_those_of_separate_rows(name: str, tmp_path: Path) -> None:
    trainer = trained(Trainer(make(tmp_path / "model", CONFIGS[name]), FP32))
    data = batch()
    stats = trainer.forward_backward(data, LossSpec("cross_entropy"))
    loss, wanted = separate_rows(trainer, tmp_path / "merged", data)
    assert stats.loss == pytest.approx(loss, abs=1e-4)
    found = trainer.gradients()
    assert found.keys() == wanted.keys()
    for key, value in found.items():
        torch.testing.assert_close(value, wanted[key], atol=1e-4, rtol=1e-3)
    assert max(float(value.abs().max()) for value in found.values()) > 1e-2


@pytest.mark.parametrize("name", ["llama", "qwen3 untied", "mistral"])
def test_layers_that_are_computed_again_give_the_same_gradients(name: str, tmp_path: Path) -> None:
    model, results = make(tmp_path, CONFIGS[name]), []
    kept: list[int] = []
    for recompute in (False, True):
        trainer = trained(Trainer(model, TrainerSpec(dtype="float32", block=8, recompute=recompute)))
        stored = 0

        def count(tensor: Tensor) -> Tensor:
            nonlocal stored
            stored += tensor.numel()
            return tensor

        with torch.autograd.graph.saved_tensors_hooks(count, lambda tensor: tensor):
            trainer.forward_backward(batch(), LossSpec("cispo"))
        results.append(trainer.gradients())
        kept.append(stored)
    for key, value in results[0].items():
        torch.testing.assert_close(value, results[1][key], atol=1e-6, rtol=1e-5)
    assert kept[1] < kept[0] / 4


def test_a_bf16_base_has_fp32_adapters_and_nearly_the_gradients_of_fp32(tmp_path: Path) -> None:
    model = make(tmp_path, CONFIGS["llama untied"])
    exact, narrow = (trained(Trainer(model, TrainerSpec(dtype=dtype, block=8))) for dtype in ("float32", "bfloat16"))  # type: ignore[arg-type]
    for trainer in (exact, narrow):
        trainer.forward_backward(batch(), LossSpec("cross_entropy"))
    assert {layer.merged.dtype for layer in narrow.layers} == {torch.bfloat16}
    assert {value.dtype for value in narrow.adapter().values()} == {torch.float32}
    wanted, found = (torch.cat([value.flatten() for value in one.gradients().values()]) for one in (exact, narrow))
    assert found.dtype == torch.float32
    assert float((found - wanted).norm() / wanted.norm()) < 0.05


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
def test_norms_keep_their_input_alone_and_compute_what_they_did(dtype: torch.dtype) -> None:
    torch.manual_seed(0)
    norm = LlamaRMSNorm(24, eps=1e-5).to(dtype)
    norm.weight.data.uniform_(0.5, 2).to(dtype)
    norm.requires_grad_(False)
    x = (torch.randn(7, 24) * 3).to(dtype).requires_grad_()
    pull, kept = torch.randn(7, 24).to(dtype), []
    wanted = norm(x)
    (gradient,) = torch.autograd.grad((wanted * pull).sum(), x)
    assert slim_norms(norm) == 1
    with torch.autograd.graph.saved_tensors_hooks(lambda tensor: kept.append(tensor.shape) or tensor, lambda t: t):
        found = norm(x)
    assert torch.equal(found, wanted)
    assert kept == [x.shape, norm.weight.shape, (7, 1)]
    (ours,) = torch.autograd.grad((found * pull).sum(), x)
    torch.testing.assert_close(ours, gradient, atol=1e-5 if dtype == torch.float32 else 2e-2, rtol=1e-2)


def test_a_norm_that_computes_otherwise_is_left_alone() -> None:
    class Shifted(LlamaRMSNorm):
        def forward(self, hidden_states: Tensor) -> Tensor:
            return super().forward(hidden_states) + hidden_states * 0.01

    assert slim_norms(Shifted(8)) == 0


def dense(positions: Tensor, end: Tensor, window: int | None) -> Tensor:
    """Who sees whom, by walking from each node to its ancestors."""
    total = positions.numel()
    sees = torch.zeros(total, total, dtype=torch.bool)
    path: list[int] = []
    for node in range(total):
        path = [*path[: int(positions[node])], node]
        near = path if window is None else path[-window:]
        sees[node, near] = True
    return sees


@pytest.mark.filterwarnings("ignore:flex_attention called without torch.compile")
@pytest.mark.parametrize("window", [None, 4])
def test_both_ways_of_attending_are_a_dense_mask(window: int | None) -> None:
    (tree,) = pack(batch(), 10_000)
    positions, end, total = tree.positions, tree.end, tree.size
    wanted = dense(positions, end, window)
    nodes = torch.arange(total)
    zero = torch.tensor(0)
    found = tree_mask(positions, end, window)(zero, zero, nodes[:, None], nodes[None, :])
    assert torch.equal(found, wanted)

    torch.manual_seed(0)
    q, k, v = (torch.randn(heads, total, 16, requires_grad=True) for heads in (4, 2, 2))
    pull = torch.randn(4, total, 16)

    def plain(q: Tensor, k: Tensor, v: Tensor) -> Tensor:
        scores = q @ k.repeat_interleave(2, 0).transpose(1, 2) * 0.25
        return scores.masked_fill(~wanted, float("-inf")).softmax(-1) @ v.repeat_interleave(2, 0)

    out = plain(q, k, v)
    blocked = blocked_tree(positions, end, 8).attend(q, k, v, 0.25, window)
    torch.testing.assert_close(blocked, out, atol=1e-5, rtol=1e-4)
    for got, want in zip(
        torch.autograd.grad((blocked * pull).sum(), (q, k, v)),
        torch.autograd.grad((out * pull).sum(), (q, k, v)),
        strict=True,
    ):
        torch.testing.assert_close(got, want, atol=1e-5, rtol=1e-4)
    # On a CPU flex-attention has no backward, and refuses whatever wants one.
    flexed = FlexTree(positions, end, {}).attend(q.detach(), k.detach(), v.detach(), 0.25, window)
    torch.testing.assert_close(flexed, out.detach(), atol=1e-5, rtol=1e-4)


def test_a_gpu_attends_by_flex_and_a_cpu_by_blocks() -> None:
    positions, end = torch.tensor([0, 1]), torch.tensor([2, 2])
    assert type(attention_tree(positions, end, 8, "cpu")).__name__ == "BlockedTree"
    if torch.cuda.is_available():
        assert isinstance(attention_tree(positions, end, 8, "cuda"), FlexTree)


def test_a_head_with_a_bias_is_refused(tmp_path: Path) -> None:
    from transformers import PhiConfig

    config = PhiConfig(**{**SHAPE, "num_key_value_heads": 4}, tie_word_embeddings=False)
    with pytest.raises(UnsupportedModelError, match="bias"):
        Trainer(make(tmp_path, config), FP32)
