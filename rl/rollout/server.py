"""Owns one vLLM server as processes: its flags and environment, start, readiness, death, end. Knows no policy.

The server listens on a Unix socket in a private folder, or on a loopback port; every wait has a limit and a message.
"""

import json
import os
import secrets
import shutil
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

import httpx
import torch

from rl.precision import native_precision
from rl.rollout.base import SamplerError
from rl.types import TEMPLATE_ARGUMENTS


@dataclass(frozen=True, slots=True)
class ServerSpec:
    """How to run vLLM. `port` None: a Unix socket that only this user can open. `dev`: weights can be pushed, so
    never for an engine that serves clients (vLLM's key does not guard those paths). `threads` 0: every core."""

    model_dir: Path
    log: Path
    name: str = "policy"
    port: int | None = None
    dev: bool = False
    threads: int = 0
    max_model_len: int = 2048
    max_num_seqs: int = 128
    kv_cache_gb: int = 1
    start_timeout_s: float = 240.0
    extra: Sequence[str] = ()


def template_flags() -> list[str]:
    """What makes vLLM show a chat template what rl.render shows it; by itself it would guess from the template."""
    return [
        "--chat-template-content-format",
        "string",
        "--default-chat-template-kwargs",
        json.dumps(TEMPLATE_ARGUMENTS),
    ]


class VllmServer:
    """A running vLLM. `key` is its bearer key, `client()` a client that knows address and key."""

    def __init__(self, spec: ServerSpec) -> None:
        self.spec = spec
        self.key = secrets.token_urlsafe(24)
        self._folder = Path(tempfile.mkdtemp(prefix="sd-vllm-"))
        self.socket = self._folder / "api.sock" if spec.port is None else None
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def alive(self) -> bool:
        return self._process is not None and self._process.poll() is None

    @property
    def pid(self) -> int | None:
        """The process group's id (also its session's), while it runs."""
        return self._process.pid if self._process else None

    def client(self, timeout_s: float = 60.0) -> httpx.Client:
        """A client for this server; close it after use."""
        transport = httpx.HTTPTransport(uds=str(self.socket)) if self.socket else None
        base = "http://engine" if self.socket else f"http://127.0.0.1:{self.spec.port}"
        headers = {"authorization": f"Bearer {self.key}"}
        limits = httpx.Limits(max_connections=None)
        return httpx.Client(transport=transport, base_url=base, headers=headers, timeout=timeout_s, limits=limits)

    def start(self) -> None:
        """Start the processes and return at once; `wait_ready` tells when it answers."""
        self.stop()
        self.spec.log.parent.mkdir(parents=True, exist_ok=True)
        if self.socket:
            self.socket.unlink(missing_ok=True)
        command = [sys.executable, "-m", "rl.rollout.guard", sys.executable, "-m", "vllm.entrypoints.openai.api_server"]
        with self.spec.log.open("ab") as log:
            self._process = subprocess.Popen(
                [*command, *self._flags()],
                stdin=subprocess.PIPE,
                stdout=log,
                stderr=subprocess.STDOUT,
                env=self._environment(),
                start_new_session=True,
            )

    def wait_ready(self) -> None:
        """Wait until it answers /health. Raises SamplerError with the log's end if it dies or takes too long."""
        deadline = time.monotonic() + self.spec.start_timeout_s
        with self.client(timeout_s=5.0) as client:
            while time.monotonic() < deadline:
                if not self.alive:
                    raise SamplerError(f"vLLM ended while starting: {self.log_tail()} (log: {self.spec.log})")
                with suppress(httpx.HTTPError):
                    if client.get("/health").status_code == httpx.codes.OK:
                        return
                time.sleep(0.2)
        self.stop()
        raise SamplerError(
            f"vLLM was not ready after {self.spec.start_timeout_s:.0f} s: {self.log_tail()} (log: {self.spec.log})"
        )

    def stop(self) -> None:
        """End every process of it, softly for 5 s, then for good."""
        process, self._process = self._process, None
        if process is None:
            return
        if process.stdin:
            process.stdin.close()  # the guard sees it and ends the group
        with suppress(subprocess.TimeoutExpired):
            process.wait(timeout=8)
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGKILL)
        process.wait()

    def close(self) -> None:
        """Stop and remove the socket's folder."""
        self.stop()
        shutil.rmtree(self._folder, ignore_errors=True)

    def log_tail(self, lines: int = 3) -> str:
        """The log's last telling lines."""
        try:
            text = self.spec.log.read_text(errors="replace")[-20_000:]
        except OSError:
            return "no log"
        found = [line.strip() for line in text.splitlines() if "Error" in line or "ERROR" in line]
        return " | ".join((found or text.splitlines())[-lines:]) or "the log is empty"

    def _flags(self) -> list[str]:
        spec = self.spec
        where = ["--uds", str(self.socket)] if self.socket else ["--host", "127.0.0.1", "--port", str(spec.port)]
        flags = [
            *("--model", str(spec.model_dir)),
            *where,
            *("--served-model-name", spec.name),
            *("--dtype", native_precision()),
            *("--max-model-len", str(spec.max_model_len)),
            *("--max-num-seqs", str(spec.max_num_seqs)),
            # Sampling defaults in a model's folder would change every request that does not name them.
            *("--generation-config", "vllm"),
            *template_flags(),
            "--disable-uvicorn-access-log",
        ]
        if not torch.cuda.is_available():
            flags.append("--enforce-eager")  # compiling takes a minute and gains 2 % here
            # Whole blocks are what siblings and a shared system prompt share; vLLM's 128 are longer than most tails.
            flags += ["--block-size", "32"]
        if spec.dev:
            # Log-probs of what was drawn from (after temperature): those that training needs.
            flags += ["--logprobs-mode", "processed_logprobs"]
        return [*flags, *spec.extra]

    def _environment(self) -> dict[str, str]:
        env = dict(os.environ)
        env.update(
            VLLM_API_KEY=self.key,
            VLLM_NO_USAGE_STATS="1",
            VLLM_LOGGING_LEVEL="WARNING",
            HF_HUB_OFFLINE="1",
            TOKENIZERS_PARALLELISM="false",
        )
        env.pop("VLLM_SERVER_DEV_MODE", None)
        if self.spec.dev:
            env["VLLM_SERVER_DEV_MODE"] = "1"
        if not torch.cuda.is_available():
            cores = sorted(os.sched_getaffinity(0))
            used = cores[: self.spec.threads] if self.spec.threads else cores
            # Unset, vLLM keeps a core for itself and runs on what is left: half of a two-core machine.
            env.update(
                VLLM_CPU_OMP_THREADS_BIND=",".join(map(str, used)),
                VLLM_CPU_NUM_OF_RESERVED_CPU="0",
                VLLM_CPU_KVCACHE_SPACE=str(self.spec.kv_cache_gb),
            )
            openmp = Path(sys.prefix) / "lib" / "libiomp5.so"
            if openmp.is_file():
                env["LD_PRELOAD"] = ":".join(filter(None, [str(openmp), env.get("LD_PRELOAD")]))
        return env
