"""Owns sampling inside this process with transformers: deterministic, for tests and tiny models. Starts nothing."""

import zlib
from collections.abc import Sequence
from pathlib import Path

import torch
from transformers import AutoModelForCausalLM, DynamicCache

from rl.rollout.base import Sampler, SamplerError
from rl.types import Sample, SamplingParams


class LocalSampler(Sampler):
    """The same seed, weights and prompts give the same samples, whatever was asked before: a run that goes on after a
    kill samples what it would have sampled. `top_p` and `top_k` are refused unless off."""

    def __init__(self, model_dir: Path | str, *, seed: int = 0, dtype: torch.dtype = torch.float32) -> None:
        self.version = -1
        self._dtype = dtype
        self._seed = seed
        self._load(Path(model_dir))

    def push(self, weights_dir: Path, version: int) -> None:
        self._load(Path(weights_dir))
        self.version = version

    def close(self) -> None:
        return None

    @torch.no_grad()
    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams) -> list[list[Sample]]:
        if params.top_p != 1.0 or params.top_k not in {-1, 0}:
            raise SamplerError("the local sampler draws from the whole distribution: leave top_p and top_k off")
        chance = torch.Generator().manual_seed(self._seed_of(prompts, params))
        return [self._one(list(prompt), n, params, chance) for prompt in prompts]

    def _seed_of(self, prompts: Sequence[Sequence[int]], params: SamplingParams) -> int:
        if params.seed is not None:
            return params.seed
        return zlib.crc32(repr((self._seed, self.version, [list(prompt) for prompt in prompts])).encode())

    def _load(self, folder: Path) -> None:
        self._model = AutoModelForCausalLM.from_pretrained(folder, dtype=self._dtype).eval()

    def _one(self, prompt: list[int], n: int, params: SamplingParams, chance: torch.Generator) -> list[Sample]:
        cache = DynamicCache(config=self._model.config)
        step = torch.tensor([prompt] * n)
        tokens: list[list[int]] = [[] for _ in range(n)]
        logprobs: list[list[float]] = [[] for _ in range(n)]
        open_rows = set(range(n))
        for _ in range(params.max_tokens):
            logits = self._model(input_ids=step, past_key_values=cache, use_cache=True).logits[:, -1].float()
            if params.temperature == 0:
                plain, drawn = logits.log_softmax(-1), logits.argmax(-1)
            else:
                plain = (logits / params.temperature).log_softmax(-1)
                drawn = torch.multinomial(plain.exp(), 1, generator=chance).squeeze(-1)
            for row in sorted(open_rows):
                token = int(drawn[row])
                tokens[row].append(token)
                logprobs[row].append(float(plain[row, token]))
                if token in params.stop_token_ids:
                    open_rows.discard(row)
            if not open_rows:
                break
            step = drawn.unsqueeze(-1)
        return [
            Sample(tuple(tokens[row]), tuple(logprobs[row]), "length" if row in open_rows else "stop", self.version)
            for row in range(n)
        ]
