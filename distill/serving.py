"""Owns the engine that serves a student: `python -m distill.serving DEPLOYMENT_ID --port P`, under the supervisor.

It is ready when the engine has answered a real prompt of its task. It never takes other weights: a new student is a
new deployment, and the trainer's sampler is another engine. Must not decide who is sent here.
"""

from __future__ import annotations

import argparse
import logging
import signal
import time
from dataclasses import dataclass
from pathlib import Path
from types import FrameType
from typing import Any
from uuid import UUID

from distill.outcomes import Hopeless, Stopped
from gateway.core.db import session_scope
from gateway.core.logs import write_logs
from gateway.core.settings import read_or_create_secret, settings
from gateway.datasets import service as datasets
from gateway.students import service as students
from rl.rollout.base import SamplerError
from rl.rollout.server import ServerSpec, VllmServer

log = logging.getLogger(__name__)
WATCH_S = 0.2


@dataclass(frozen=True)
class Served:
    """What is to be served: the student's name and folder, the longest context, a prompt of its task."""

    name: str
    weights: Path
    context_length: int
    messages: list[Any]
    tools: list[Any] | None


def main(arguments: list[str] | None = None) -> int:
    """Serves until the engine ends or SIGTERM comes. 0: asked to stop; else the engine failed."""
    parser = argparse.ArgumentParser(prog="python -m distill.serving", description=__doc__)
    parser.add_argument("deployment_id", type=UUID)
    parser.add_argument("--port", type=int, required=True, help="port on 127.0.0.1 for OpenAI's wire")
    given = parser.parse_args(arguments)
    write_logs()
    signal.signal(signal.SIGTERM, _on_term)
    signal.signal(signal.SIGINT, _on_term)
    try:
        return serve(given.deployment_id, given.port)
    except Stopped:
        return 0
    except Hopeless as error:
        log.error("%s", error)
        with session_scope() as session:
            students.mark_failed(session, given.deployment_id, str(error))
        return 1
    except SamplerError as error:
        # Another start may do better: the supervisor tries again, and gives up after a few.
        log.error("%s", error)
        return 1


def serve(deployment_id: UUID, port: int) -> int:
    """Starts the engine, shows that it answers, marks the deployment ready, and stays until the engine ends."""
    served = _served(deployment_id)
    server = VllmServer(
        ServerSpec(
            model_dir=served.weights,
            log=settings().logs_dir / f"engine-{served.name}.log",
            name=served.name,
            port=port,
            threads=settings().vllm_threads,
            max_model_len=served.context_length,
            # The evidence was measured at temperature 0: that is what a request gets which names none.
            extra=("--override-generation-config", '{"temperature": 0.0}'),
        )
    )
    server.key = read_or_create_secret(settings().secrets_dir / "engine.key")
    try:
        server.start()
        server.wait_ready()
        _smoke(server, served)
        with session_scope() as session:
            students.mark_ready(session, deployment_id, f"http://127.0.0.1:{port}/v1")
        log.info("%s answers on port %d", served.name, port)
        while server.alive:
            time.sleep(WATCH_S)
        log.error("the engine of %s ended: %s", served.name, server.log_tail())
        return 1
    finally:
        server.close()


def _served(deployment_id: UUID) -> Served:
    with session_scope() as session:
        found = students.deployed(session, deployment_id)
        if found is None:
            raise Hopeless(f"There is no deployment {deployment_id}.")
        version = UUID(found.manifest["dataset_version"]["id"])
        example = datasets.validation_rows(session, found.project_id, version)[0]
    weights = settings().models_dir / found.path
    if not (weights / "model.safetensors").is_file():
        raise Hopeless(f"The weights of {found.name} are not in {weights}: put the folder back or train again.")
    return Served(found.name, weights, found.manifest["context_length"], example.messages, example.tools)


def _smoke(server: VllmServer, served: Served) -> None:
    """One real prompt, which also pays for what an engine does at its first request. Raises SamplerError."""
    request: dict[str, Any] = {"model": served.name, "messages": served.messages, "max_tokens": 16}
    if served.tools:
        request["tools"] = served.tools
    with server.client() as client:
        response = client.post("/v1/chat/completions", json=request)
    answered = response.is_success and response.json()["choices"][0]["message"]
    if not answered or not (answered.get("content") or answered.get("tool_calls")):
        said = f"{response.status_code} {response.text[:300]}"
        raise SamplerError(f"{served.name} did not answer its first prompt: {said}")


def _on_term(_number: int, _frame: FrameType | None) -> None:
    signal.signal(signal.SIGTERM, signal.SIG_IGN)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    raise Stopped


if __name__ == "__main__":
    raise SystemExit(main())
