"""Packing computes what separate rows compute: log-probs, losses and gradients, to 1e-4 in fp32."""

import random
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Literal

import pytest
import torch
from transformers import AutoModelForCausalLM

from rl.losses import denominator
from rl.pack import check_masks, pack
from rl.trainer import Trainer, TrainerSpec
from rl.trainer.head import Head
from rl.types import Datum, LossName, LossSpec, MaskError

FP32 = TrainerSpec(dtype="float32", micro_tokens=10_000, block=8, clip=1e9)


def batch(seed: int = 0, groups: int = 3, size: int = 4) -> list[Datum]:
    """Groups with a common system prompt, a user turn each, and completions that often begin (or are) alike."""
    draw = random.Random(seed)

    def tokens(count: int, of: int = 250) -> list[int]:
        return [draw.randrange(of) for _ in range(count)]

    system, data = tokens(21), []
    for group in range(groups):
        prompt = system + tokens(draw.randrange(3, 9))
        for _ in range(size):
            completion = tokens(draw.randrange(1, 8), of=2) + tokens(draw.randrange(1, 4))
            behaviour = [draw.uniform(-6, -4) for _ in completion]
            zeros = [0.0] * len(prompt)
            data.append(
                Datum(
                    prompt + completion,
                    zeros + [draw.choice([1.0, 1.0, 0.5]) for _ in completion],
                    advantage=draw.uniform(-1, 1),
                    sampler_logprobs=zeros + behaviour,
                    old_logprobs=zeros + [value + draw.uniform(-0.3, 0.3) for value in behaviour],
                    group=group,
                )
            )
        data.append(data[-1])  # a completion sampled twice
    return data


def trained(trainer: Trainer, seed: int = 3) -> Trainer:
    """Give the adapter something to say: B starts at zero."""
    torch.manual_seed(seed)
    trainer.set_adapter({name: torch.randn_like(value) * 0.1 for name, value in trainer.adapter().items()})
    return trainer


@pytest.fixture(scope="module")
def trainer(tiny_dir: Path) -> Trainer:
    return trained(Trainer(tiny_dir, FP32))


@pytest.mark.parametrize(("micro_tokens", "block"), [(10_000, 7), (10_000, 64), (60, 8), (1, 1)])
def test_packed_logprobs_are_those_of_a_plain_model(
    tiny_dir: Path, tmp_path: Path, micro_tokens: int, block: int
) -> None:
    packed = trained(Trainer(tiny_dir, TrainerSpec(dtype="float32", micro_tokens=micro_tokens, block=block)))
    packed.export_merged(tmp_path / "merged")
    plain = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32, attn_implementation="eager")
    data = batch()
    for datum, got in zip(data, packed.logprobs(data), strict=True):
        ids = torch.tensor([list(datum.tokens)])
        logprobs = plain(ids).logits.detach().log_softmax(-1)
        for place in range(1, len(datum.tokens)):
            want = float(logprobs[0, place - 1, datum.tokens[place]]) if datum.weights[place] else 0.0
            assert got[place] == pytest.approx(want, abs=1e-4)


def test_gradients_at_another_temperature_are_autograds() -> None:
    torch.manual_seed(0)
    hidden, weight = torch.randn(4, 6, dtype=torch.float32, requires_grad=True), torch.randn(9, 6)
    rows, tokens, pull = torch.tensor([0, 0, 2, 3]), torch.tensor([1, 5, 8, 0]), torch.randn(4)
    (Head.of(weight).logprobs(hidden, rows, tokens, 1.7) * pull).sum().backward()
    ours, hidden.grad = hidden.grad, None
    ((hidden @ weight.T / 1.7).log_softmax(-1)[rows, tokens] * pull).sum().backward()
    torch.testing.assert_close(ours, hidden.grad, atol=1e-5, rtol=1e-5)


LOSSES: list[LossName] = [
    "cispo", "dapo", "ppo", "gspo", "grpo", "dr_grpo", "importance_sampling", "cross_entropy",
]  # fmt: skip


@pytest.mark.parametrize("normalise", [None, "sequence_mean"])
@pytest.mark.parametrize("name", LOSSES)
def test_one_batch_of_sixteen_is_sixteen_of_one(
    trainer: Trainer, name: LossName, normalise: Literal["sequence_mean"] | None
) -> None:
    """One packed call, sixteen calls with the step's denominator, and calls of odd sizes: one loss, one gradient."""
    data, spec = batch(groups=4, size=3), LossSpec(name, normalise=normalise, beta=0.1)
    assert len(data) == 16
    packed = trainer.forward_backward(data, spec)
    together = trainer.gradients()
    trainer.discard()
    assert packed.packed_tokens < 0.5 * packed.plain_tokens
    whole = replace(spec, denominator=denominator(spec, data))
    for cuts in (range(17), [0, 5, 6, 16]):
        parts = [data[start:stop] for start, stop in pairwise(cuts)]
        loss = sum(trainer.forward_backward(part, whole).loss for part in parts)
        apart = trainer.gradients()
        trainer.discard()
        assert packed.loss == pytest.approx(loss, abs=1e-4)
        assert together.keys() == apart.keys()
        for key, value in together.items():
            torch.testing.assert_close(value, apart[key], atol=1e-4, rtol=1e-4)
            assert float(value.abs().max()) > 0


@pytest.mark.parametrize("name", LOSSES)
def test_micro_batches_are_filled_by_tokens_and_change_nothing(tiny_dir: Path, name: LossName) -> None:
    data, results = batch(), []
    for micro_tokens in (10_000, 40):
        trainer = trained(Trainer(tiny_dir, TrainerSpec(dtype="float32", micro_tokens=micro_tokens, block=8)))
        stats = trainer.forward_backward(data, LossSpec(name))
        results.append((stats, trainer.gradients()))
    (one, whole), (many, parts) = results
    assert many.micro_batches > one.micro_batches == 1
    assert max(tree.size for tree in pack(data, 40)) <= 40
    assert many.loss == pytest.approx(one.loss, abs=1e-5)
    for key, value in whole.items():
        torch.testing.assert_close(value, parts[key], atol=1e-5, rtol=1e-4)


def test_gradients_are_those_of_pefts_own_forward(tiny_dir: Path) -> None:
    ours = trained(Trainer(tiny_dir, FP32))
    data = batch()
    ours.forward_backward(data, LossSpec("cross_entropy"))
    merged_way = ours.gradients()
    ours.discard()
    for layer in ours.layers:
        del layer.module.forward  # back to peft's class
    ours.forward_backward(data, LossSpec("cross_entropy"))
    for key, value in ours.gradients().items():
        torch.testing.assert_close(merged_way[key], value, atol=1e-4, rtol=1e-4)


def test_a_sibling_does_not_leak(trainer: Trainer) -> None:
    """Changing one branch leaves every other branch's log-probs as they were."""
    data = batch(groups=1, size=4)
    before = trainer.logprobs(data)
    other = Datum([*data[0].tokens[:-2], 99, 98], data[0].weights)
    after = trainer.logprobs([other, *data[1:]])
    for index in range(1, len(data)):
        assert after[index] == pytest.approx(before[index], abs=1e-5)
    assert after[0][-1] != pytest.approx(before[0][-1], abs=1e-3)


def test_order_of_sequences_does_not_matter(trainer: Trainer) -> None:
    data = batch()
    order = list(range(len(data)))
    random.Random(1).shuffle(order)
    straight, shuffled = trainer.logprobs(data), trainer.logprobs([data[i] for i in order])
    for place, index in enumerate(order):
        assert shuffled[place] == pytest.approx(straight[index], abs=1e-6)


def test_shared_beginnings_are_stored_once() -> None:
    data = [
        Datum([1, 2, 3, 4, 9], [0, 0, 0, 1, 1]),
        Datum([1, 2, 3, 5, 9], [0, 0, 0, 1, 1]),
        Datum([1, 2, 3], [0, 0, 1]),
    ]
    (tree,) = pack(data, 100)
    assert tree.ids.tolist() == [1, 2, 3, 4, 5]
    assert tree.positions.tolist() == [0, 1, 2, 3, 3]
    assert tree.end.tolist() == [5, 5, 5, 4, 5]


def test_masks_fail_closed() -> None:
    with pytest.raises(MaskError, match="all zero"):
        check_masks([Datum([1, 2, 3], [0, 0, 0])])
    with pytest.raises(MaskError, match="all one"):
        check_masks([Datum([1, 2, 3], [0, 1, 1])])
    with pytest.raises(MaskError, match="2 weights for 3 tokens"):
        Datum([1, 2, 3], [0, 1])
    with pytest.raises(MaskError, match="first token"):
        Datum([1, 2, 3], [1, 1, 0])
    with pytest.raises(MaskError, match="empty"):
        check_masks([])
