"""The trainer's promises: whole checkpoints, exact export, a refused gradient changes nothing, honest drift."""

import math
from pathlib import Path

import pytest
import torch
from peft import PeftModel
from transformers import AutoConfig, AutoModelForCausalLM

from rl.trainer import (
    Trainer,
    TrainerSpec,
    TrainingError,
    UnsupportedModelError,
    decayed,
    rl_learning_rate,
    sft_learning_rate,
    warmed_up,
)
from rl.trainer.model import check_config
from rl.types import Datum, LossSpec

SPEC = TrainerSpec(dtype="float32", rank=4, alpha=8, block=8)
DATA = [Datum([5, 6, 7, 8, 9], [0, 0, 1, 1, 1]), Datum([5, 6, 3, 4], [0, 0, 1, 1])]
LOSS = LossSpec("cross_entropy")


def stepped(trainer: Trainer, steps: int = 3) -> Trainer:
    for _ in range(steps):
        trainer.forward_backward(DATA, LOSS)
        trainer.optim_step(1e-2)
    return trainer


def test_sft_lowers_the_loss(tiny_dir: Path) -> None:
    trainer = Trainer(tiny_dir, SPEC)
    before = trainer.forward_backward(DATA, LOSS).loss
    trainer.discard()
    stepped(trainer, 10)
    assert trainer.forward_backward(DATA, LOSS).loss < before - 0.5


def test_the_stats_tell_each_sequences_log_prob_in_the_batchs_order(tiny_dir: Path) -> None:
    trainer = Trainer(tiny_dir, SPEC)
    wanted = [sum(values) for values in trainer.logprobs(DATA)]
    assert trainer.forward_backward(DATA, LOSS).sequence_logprobs == pytest.approx(wanted, abs=1e-4)
    assert wanted[0] != pytest.approx(wanted[1], abs=1e-2)


def test_a_loaded_checkpoint_takes_the_same_next_step(tiny_dir: Path, tmp_path: Path) -> None:
    one = stepped(Trainer(tiny_dir, SPEC))
    one.save(tmp_path / "c")
    other = Trainer(tiny_dir, SPEC)
    other.load(tmp_path / "c")
    assert other.steps == 3
    for trainer in (one, other):
        stepped(trainer, 1)
    for name, value in one.adapter().items():
        torch.testing.assert_close(value, other.adapter()[name], atol=0, rtol=0)


def test_a_new_phase_has_fresh_optimizer_state(tiny_dir: Path, tmp_path: Path) -> None:
    one = stepped(Trainer(tiny_dir, SPEC))
    one.save(tmp_path / "c")
    other = Trainer(tiny_dir, SPEC)
    other.start_from(tmp_path / "c")
    assert other.steps == 0
    assert not other._optimizer.state
    assert other.logprobs(DATA) == one.logprobs(DATA)


def test_checkpoints_are_whole_or_not_there(tiny_dir: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    trainer = stepped(Trainer(tiny_dir, SPEC))
    trainer.save(tmp_path / "c")
    stepped(trainer, 1)
    trainer.save(tmp_path / "c")  # over an older one
    again = Trainer(tiny_dir, SPEC)
    again.load(tmp_path / "c")
    assert again.steps == 4

    def full(*_: object) -> None:
        raise OSError("no space left")

    monkeypatch.setattr("rl.trainer.checkpoint.save_file", full)
    with pytest.raises(OSError, match="no space"):
        trainer.save(tmp_path / "d")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["c"]
    (tmp_path / "c" / "optimizer.safetensors").unlink()
    with pytest.raises(FileNotFoundError, match="lacks optimizer"):
        again.load(tmp_path / "c")


def test_the_exported_model_is_the_trained_one(tiny_dir: Path, tmp_path: Path) -> None:
    trainer = stepped(Trainer(tiny_dir, SPEC))
    trainer.export_merged(tmp_path / "merged")
    trainer.save(tmp_path / "adapter")
    ids = torch.tensor([[5, 6, 7, 8]])
    merged = AutoModelForCausalLM.from_pretrained(tmp_path / "merged", dtype=torch.float32)
    # The saved adapter is peft's own format: any engine that loads peft adapters loads it.
    base = AutoModelForCausalLM.from_pretrained(tiny_dir, dtype=torch.float32)
    adapted = PeftModel.from_pretrained(base, tmp_path / "adapter")
    with torch.no_grad():
        torch.testing.assert_close(merged(ids).logits, adapted(ids).logits, atol=1e-4, rtol=1e-4)
    (got,) = trainer.logprobs([Datum([5, 6, 7, 8], [0, 0, 0, 1])])
    want = merged(ids).logits.detach()[0, 2].log_softmax(-1)[8]
    assert got[3] == pytest.approx(float(want), abs=1e-4)


def test_a_gradient_that_is_not_finite_changes_nothing(tiny_dir: Path) -> None:
    trainer = stepped(Trainer(tiny_dir, SPEC))
    before = {name: value.clone() for name, value in trainer.adapter().items()}
    trainer.forward_backward([Datum(DATA[0].tokens, DATA[0].weights, advantage=float("nan"))], LossSpec("cispo"))
    with pytest.raises(TrainingError, match="nan"):
        trainer.optim_step(1e-2)
    assert all(torch.equal(value, before[name]) for name, value in trainer.adapter().items())
    stepped(trainer, 1)
    assert trainer.steps == 4


def test_drift_is_zero_at_the_start_and_grows(tiny_dir: Path, tmp_path: Path) -> None:
    trainer = Trainer(tiny_dir, SPEC)
    start = trainer.drift(DATA)
    assert (start.weight_ratio, start.moved_share) == (0.0, 0.0)
    stepped(trainer)
    trainer.save(tmp_path / "c")
    from_base = trainer.drift(DATA)
    assert from_base.weight_ratio > 0
    assert from_base.moved_share > 0
    since = trainer.drift(DATA, since=tmp_path / "c")
    assert since.weight_ratio == pytest.approx(0, abs=1e-4)
    assert since.kl == pytest.approx(0, abs=1e-9)
    assert trainer.drift(DATA) == from_base  # looking changed nothing


def test_drift_is_what_two_models_say_beside_each_other(tiny_dir: Path, tmp_path: Path) -> None:
    trainer = stepped(Trainer(tiny_dir, SPEC))
    drift = trainer.drift(DATA)
    trainer.export_merged(tmp_path / "now")
    now, then = (
        AutoModelForCausalLM.from_pretrained(folder, dtype=torch.float32) for folder in (tmp_path / "now", tiny_dir)
    )
    falls, kls, change, size = [], {}, 0.0, 0.0
    for datum in DATA:
        ids = torch.tensor([list(datum.tokens)])
        with torch.no_grad():
            after, before = (model(ids).logits[0].log_softmax(-1) for model in (now, then))
        for place in range(1, len(datum.tokens)):
            if datum.weights[place]:
                token = datum.tokens[place]
                falls.append(float(before[place - 1, token] - after[place - 1, token]))
                # Sequences that begin alike share a place, which counts once.
                key = tuple(datum.tokens[:place])
                kls[key] = float((before[place - 1].exp() * (before[place - 1] - after[place - 1])).sum())
    for layer in trainer.layers:
        old, new = (
            dict(model.named_parameters())[f"{layer.name.removeprefix('base_model.model.')}.weight"]
            for model in (then, now)
        )
        change, size = change + float((new - old).detach().pow(2).sum()), size + float(old.detach().pow(2).sum())
    assert drift.forgotten == pytest.approx(sum(falls) / len(falls), abs=1e-4)
    assert drift.moved_share == pytest.approx(sum(abs(fall) > 0.1 for fall in falls) / len(falls))
    assert drift.kl == pytest.approx(sum(kls.values()) / len(kls), abs=1e-4)
    assert drift.weight_ratio == pytest.approx((change / size) ** 0.5, rel=1e-3)


def test_kl_to_the_base_uses_the_adapter_switched_off(tiny_dir: Path) -> None:
    trainer = stepped(Trainer(tiny_dir, SPEC))
    flat = [Datum(datum.tokens, datum.weights, advantage=0.0) for datum in DATA]
    assert trainer.forward_backward(flat, LossSpec("cispo")).loss == pytest.approx(0, abs=1e-9)
    assert trainer.forward_backward(flat, LossSpec("cispo", beta=1.0)).loss > 1e-3
    fresh = Trainer(tiny_dir, SPEC)
    assert fresh.logprobs(DATA) == trainer.logprobs(DATA, base=True)


def test_kl_to_the_warm_start_is_nought_there_and_grows_away_from_it(tiny_dir: Path, tmp_path: Path) -> None:
    trainer = stepped(Trainer(tiny_dir, SPEC))
    trainer.save(tmp_path / "warm")
    flat = [Datum(datum.tokens, datum.weights, advantage=0.0) for datum in DATA]
    pull = LossSpec("cispo", beta=1.0)
    trainer.refer_to(tmp_path / "warm")
    assert trainer.forward_backward(flat, pull).loss == pytest.approx(0, abs=1e-6)
    warm = trainer.logprobs(DATA)
    stepped(trainer)
    gaps = [
        before - after
        for befores, afters, datum in zip(warm, trainer.logprobs(DATA), DATA, strict=True)
        for before, after, weight in zip(befores, afters, datum.weights, strict=True)
        if weight
    ]
    by_hand = sum(math.exp(gap) - 1 - gap for gap in gaps) / len(gaps)
    assert trainer.forward_backward(flat, pull).loss == pytest.approx(by_hand, rel=1e-3)
    trainer.refer_to(None)
    assert trainer.forward_backward(flat, pull).loss > by_hand


def test_models_that_attend_otherwise_are_refused(tiny_dir: Path) -> None:
    config = AutoConfig.from_pretrained(tiny_dir)
    check_config(config)
    config.final_logit_softcapping = 30.0
    with pytest.raises(UnsupportedModelError, match="final_logit_softcapping"):
        check_config(config)
    config.final_logit_softcapping = None
    config.layer_types = ["full_attention", "linear_attention"]
    with pytest.raises(UnsupportedModelError, match="linear_attention"):
        check_config(config)


def test_rates() -> None:
    assert sft_learning_rate(576) == pytest.approx(1.3e-3, rel=0.05)
    assert [warmed_up(1.0, step, 4) for step in range(5)] == [0.25, 0.5, 0.75, 1.0, 1.0]
    assert rl_learning_rate(576) == pytest.approx(5e-4, rel=0.05)
    assert [decayed(1.0, step, 30) for step in (0, 90, 450)] == pytest.approx([1.0, 0.5, 0.25])
