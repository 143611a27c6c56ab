"""The renderer against a running vLLM: the same ids, for every shape of message, template and family.

It is vLLM's own server with its own request parsing and templates, without the engine behind it: nothing is sampled.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest

from gateway.core.ports import free_port
from rl.render import Renderer
from rl.rollout.server import ServerSpec, VllmServer, template_flags
from tests.rl.shapes import check_shapes
from tests.rl.templates import FAMILIES, model_folder

START_S = 120.0


@pytest.fixture(scope="module")
def engine(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    """vLLM's server, shown templates by each request."""
    folder = tmp_path_factory.mktemp("engine")
    model, port, log = model_folder(folder / "model", FAMILIES["chatml"]), free_port(), folder / "log"
    command = [sys.executable, "-m", "vllm.entrypoints.launchers.render.entry", "--model", str(model)]
    command += ["--host", "127.0.0.1", "--port", str(port), *template_flags(), "--trust-request-chat-template"]
    environment = os.environ | {"HF_HUB_OFFLINE": "1", "VLLM_NO_USAGE_STATS": "1"}
    with log.open("wb") as out:
        process = subprocess.Popen(command, env=environment, stdout=out, stderr=out, start_new_session=True)
    deadline = time.monotonic() + START_S
    try:
        with httpx.Client(base_url=f"http://127.0.0.1:{port}", timeout=60, trust_env=False) as client:
            while not _answers(client):
                if process.poll() is not None or time.monotonic() > deadline:
                    pytest.fail(f"vLLM did not start:\n{log.read_text()[-3000:]}")
                time.sleep(0.2)
            yield client
    finally:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


def _answers(client: httpx.Client) -> bool:
    try:
        return client.get("/health").is_success
    except httpx.TransportError:
        return False


@pytest.mark.parametrize("family", FAMILIES)
def test_every_shape_becomes_the_engines_ids(family: str, engine: httpx.Client, tmp_path: Path) -> None:
    renderer = Renderer(model_folder(tmp_path, FAMILIES[family]))
    assert check_shapes(renderer, engine, FAMILIES[family]) >= 10


def test_the_server_that_samples_and_serves_is_started_with_the_same_flags() -> None:
    server = VllmServer(ServerSpec(Path("model"), Path("log")))
    try:
        flags = " ".join(server._flags())
        assert " ".join(template_flags()) in flags
    finally:
        server.close()
