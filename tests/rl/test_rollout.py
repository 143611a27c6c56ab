"""Samplers: log-probs are the model's, the same seed samples the same, and an engine ends with its owner."""

import os
import signal
import subprocess
import sys
import time
from pathlib import Path

import httpx
import pytest
import torch
from transformers import AutoModelForCausalLM

from rl.rollout import vllm
from rl.rollout.base import SamplerError
from rl.rollout.local import LocalSampler
from rl.rollout.server import ServerSpec
from rl.types import SamplingParams

PARAMS = SamplingParams(max_tokens=5, seed=3)


def test_logprobs_are_the_models_at_temperature_one(tiny_dir: Path) -> None:
    ((sample,),) = LocalSampler(tiny_dir).sample([[5, 6, 7]], 1, PARAMS)
    model = AutoModelForCausalLM.from_pretrained(tiny_dir, dtype=torch.float32)
    logprobs = model(torch.tensor([[5, 6, 7, *sample.tokens]])).logits.detach()[0].log_softmax(-1)
    want = [float(logprobs[2 + i, token]) for i, token in enumerate(sample.tokens)]
    assert list(sample.logprobs) == pytest.approx(want, abs=1e-4)


def test_the_same_seed_gives_the_same_samples(tiny_dir: Path) -> None:
    one, other = LocalSampler(tiny_dir), LocalSampler(tiny_dir)
    assert one.sample([[5], [6, 7]], 4, PARAMS) == other.sample([[5], [6, 7]], 4, PARAMS)
    samples = one.sample([[5]], 8, PARAMS)[0]
    assert len({sample.tokens for sample in samples}) > 4


def test_an_end_token_ends_and_is_kept(tiny_dir: Path) -> None:
    greedy = SamplingParams(max_tokens=5, temperature=0.0)
    ((first,),) = LocalSampler(tiny_dir).sample([[5]], 1, greedy)
    assert first.finish_reason == "length"
    stop = SamplingParams(max_tokens=5, temperature=0.0, stop_token_ids=(first.tokens[0],))
    ((ended,),) = LocalSampler(tiny_dir).sample([[5]], 1, stop)
    assert (ended.tokens, ended.finish_reason) == (first.tokens[:1], "stop")


def test_narrowed_sampling_is_refused(tiny_dir: Path) -> None:
    with pytest.raises(SamplerError, match="top_p"):
        LocalSampler(tiny_dir).sample([[5]], 1, SamplingParams(top_p=0.9))


class Engine:
    """Stands for a vLLM server: the first one made is dead, later ones answer one token."""

    made = 0

    def __init__(self, spec: ServerSpec) -> None:
        Engine.made += 1
        self.spec, self.alive = spec, Engine.made > 1

    def start(self) -> None: ...

    def wait_ready(self) -> None: ...

    def close(self) -> None: ...

    def client(self, _timeout_s: float) -> httpx.Client:
        choice = {"index": 0, "token_ids": [7], "logprobs": {"token_logprobs": [-0.5]}, "finish_reason": "stop"}
        transport = httpx.MockTransport(lambda _: httpx.Response(200, json={"choices": [choice]}))
        return httpx.Client(transport=transport, base_url="http://engine")


def test_an_engine_that_ended_is_started_again_and_the_owner_told(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.setattr(vllm, "VllmServer", Engine)
    told: list[str] = []
    sampler = vllm.VllmSampler(tmp_path, tmp_path / "engine.log", on_restart=told.append)
    ((sample,),) = sampler.sample([[1, 2]], 1, PARAMS)
    assert (sample.tokens, told) == ((7,), ["the server ended"])
    sampler.sample([[1, 2]], 1, PARAMS)
    assert len(told) == 1
    assert "starting vLLM again" in (tmp_path / "engine.log").read_text()


def gone(pid: int, within_s: float = 15.0) -> bool:
    deadline = time.monotonic() + within_s
    while time.monotonic() < deadline:
        try:
            state = Path(f"/proc/{pid}/stat").read_text().rsplit(")", 1)[1].split()[0]
        except FileNotFoundError:
            return True
        if state == "Z":
            return True
        time.sleep(0.05)
    return False


def test_the_guard_ends_the_whole_group_when_its_owner_is_killed() -> None:
    stubborn = "trap '' TERM; sleep 600 & echo $!; wait"
    owner = (
        "import subprocess, sys, time\n"
        f"p = subprocess.Popen([sys.executable, '-m', 'rl.rollout.guard', 'sh', '-c', {stubborn!r}],\n"
        "    stdin=subprocess.PIPE, stdout=subprocess.PIPE, start_new_session=True, text=True)\n"
        "print(p.pid, p.stdout.readline().strip(), flush=True)\n"
        "time.sleep(600)\n"
    )
    process = subprocess.Popen([sys.executable, "-c", owner], stdout=subprocess.PIPE, text=True)
    assert process.stdout is not None
    guard, sleeper = (int(word) for word in process.stdout.readline().split())
    os.kill(process.pid, signal.SIGKILL)
    process.wait()
    assert gone(sleeper)
    assert gone(guard)


def test_the_guard_ends_the_group_when_the_engine_ends() -> None:
    process = subprocess.Popen(
        [sys.executable, "-m", "rl.rollout.guard", "sh", "-c", "sleep 600 & echo $!; exit 3"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        start_new_session=True,
        text=True,
    )
    assert process.stdout is not None
    sleeper = int(process.stdout.readline())
    process.wait(timeout=15)
    assert gone(sleeper)
