"""Owns the trainer's own vLLM: samples with token ids and log-probs, takes new weights, comes back when it dies.

It is never the engine that serves clients: its weights change under it, and its development paths know no key.
"""

import time
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from typing import Any

import httpx

from rl.rollout.base import Sampler, SamplerError
from rl.rollout.server import ServerSpec, VllmServer
from rl.types import Sample, SamplingParams


class RefusedError(SamplerError):
    """The server refused a request as wrong: asking again would not help."""


_PARALLEL = 32
_RESTARTS = 2


class VllmSampler(Sampler):
    """Starts its server in the background; the first `sample` or `push` waits for it.

    `on_restart` is told why, each time that the server has to be started again.
    """

    def __init__(
        self,
        model_dir: Path | str,
        log: Path | str,
        *,
        threads: int = 0,
        max_model_len: int = 2048,
        max_num_seqs: int = 128,
        request_timeout_s: float = 300.0,
        start_timeout_s: float = 240.0,
        on_restart: Callable[[str], None] | None = None,
    ) -> None:
        self.version = -1  # the weights it was started with are no version of the policy
        self._weights = Path(model_dir)
        self._log = Path(log)
        self._shape = {
            "threads": threads,
            "max_model_len": max_model_len,
            "max_num_seqs": max_num_seqs,
            "start_timeout_s": start_timeout_s,
        }
        self._timeout_s = request_timeout_s
        self._on_restart = on_restart
        self._ready = False
        self._server = self._start()
        self._client = self._server.client(request_timeout_s)

    def wait_ready(self) -> None:
        """Wait until the first answer is quick. Raises SamplerError."""
        if self._ready and self._server.alive:
            return
        if not self._server.alive:
            self._restart()
        self._server.wait_ready()
        # The first request pays for lazy set-up; better here than inside a step's time.
        self._request([1], 1, SamplingParams(max_tokens=1))
        self._ready = True

    def sample(self, prompts: Sequence[Sequence[int]], n: int, params: SamplingParams) -> list[list[Sample]]:
        version = self.version
        done: dict[int, list[Sample]] = {}
        failure: Exception | None = None
        for _ in range(_RESTARTS + 1):
            self.wait_ready()
            left = [index for index in range(len(prompts)) if index not in done]

            def one(index: int) -> tuple[int, list[Sample] | Exception]:
                try:
                    return index, self._samples(self._request(list(prompts[index]), n, params), version)
                except (httpx.HTTPError, SamplerError) as error:
                    return index, error

            with ThreadPoolExecutor(min(_PARALLEL, max(1, len(left)))) as pool:
                for index, result in pool.map(one, left):
                    if isinstance(result, Exception):
                        failure = result
                    else:
                        done[index] = result
            if len(done) == len(prompts):
                return [done[index] for index in range(len(prompts))]
            if isinstance(failure, RefusedError):
                raise failure
            self._await_death_or_health()
        raise SamplerError(
            f"vLLM answered {len(done)} of {len(prompts)} prompts after {_RESTARTS} restarts: {failure!r}; "
            f"{self._server.log_tail()} (log: {self._log})"
        )

    def push(self, weights_dir: Path, version: int) -> None:
        weights_dir = Path(weights_dir)
        if not (weights_dir / "model.safetensors").is_file():
            # vLLM would die of it.
            raise SamplerError(f"{weights_dir} holds no merged model: export one there before pushing")
        self.wait_ready()
        try:
            self._post("/pause", params={"mode": "keep"})
            body = {"method": "reload_weights", "kwargs": {"weights_path": str(weights_dir.resolve())}}
            self._post("/collective_rpc", json=body)
            if not self._post("/reset_prefix_cache").get("success", False):
                raise SamplerError("vLLM kept its prefix cache, which belongs to the old weights")
            self._post("/resume")
        except (httpx.HTTPError, SamplerError) as error:
            # A server started on the new weights is the same thing, only slower.
            self._weights = weights_dir
            self._restart(f"pushing version {version} failed: {error!r}")
            self.wait_ready()
        self._weights, self.version = weights_dir, version

    def close(self) -> None:
        self._client.close()
        self._server.close()

    def _start(self) -> VllmServer:
        server = VllmServer(ServerSpec(self._weights, self._log, dev=True, **self._shape))  # type: ignore[arg-type]  # values of several types
        server.start()
        return server

    def _restart(self, why: str = "the server ended") -> None:
        """A new server on the last pushed weights, so that its version stays what it was."""
        with self._log.open("a") as log:
            log.write(f"stepdown: starting vLLM again on {self._weights}: {why}\n")
        if self._on_restart:
            self._on_restart(why)
        self.close()
        self._ready = False
        self._server = self._start()
        self._client = self._server.client(self._timeout_s)

    def _await_death_or_health(self, patience_s: float = 10.0) -> None:
        """After a lost connection: either the process ends in a moment, or it is stuck and gets ended."""
        deadline = time.monotonic() + patience_s
        while self._server.alive and time.monotonic() < deadline:
            with suppress(httpx.HTTPError):
                if self._client.get("/health", timeout=2.0).status_code == httpx.codes.OK:
                    return
            time.sleep(0.2)
        self._restart("it stopped answering")

    def _post(self, path: str, **kwargs: Any) -> dict[str, Any]:
        response = self._client.post(path, **kwargs)
        if response.status_code != httpx.codes.OK:
            failure = RefusedError if response.is_client_error else SamplerError
            raise failure(f"vLLM answered {path} with {response.status_code}: {response.text[:300]}")
        body = response.json() if response.content else {}
        return body if isinstance(body, dict) else {}

    def _request(self, prompt: list[int], n: int, params: SamplingParams) -> dict[str, Any]:
        body: dict[str, Any] = {
            "model": self._server.spec.name,
            "prompt": prompt,
            "n": n,
            "max_tokens": params.max_tokens,
            "temperature": params.temperature,
            "top_p": params.top_p,
            "top_k": params.top_k,
            "stop_token_ids": list(params.stop_token_ids),
            "logprobs": 0,
            "return_token_ids": True,
        }
        if params.seed is not None:
            body["seed"] = params.seed
        return self._post("/v1/completions", json=body)

    def _samples(self, body: dict[str, Any], version: int) -> list[Sample]:
        samples = []
        for choice in sorted(body["choices"], key=lambda choice: choice["index"]):
            ids, logprobs = choice["token_ids"], choice["logprobs"]["token_logprobs"]
            reason = choice["finish_reason"]
            if reason not in {"stop", "length"} or len(ids) != len(logprobs):
                raise SamplerError(
                    f"vLLM returned {len(ids)} tokens with {len(logprobs)} log-probs, ended by {reason!r}"
                )
            samples.append(Sample(tuple(ids), tuple(logprobs), reason, version))
        return samples
