"""Owns how each gateway of the bench is started, and what a client has to send it. All of them on loopback."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import psutil

from gateway.core.ports import free_port

ROOT = Path(__file__).parents[2]
PEERS = ROOT / ".bench"
NODE = str(ROOT / ".venv" / "node" / "node")
HERE = Path(__file__).parent
READY_S = 90.0


@dataclass
class Target:
    """Something that answers chat completions.

    `pids`: the processes that a call passes through. `settled`: whether it has done what calls left to do after them.
    """

    name: str
    url: str
    headers: dict[str, str] = field(default_factory=dict)
    model: str = "gpt-4o"
    pids: Sequence[int] = ()
    settled: Callable[[], bool] = lambda: True

    def body(self, stream: bool, gap_ms: int = 0) -> str:
        message = "Where is my parcel? I ordered it nine days ago and have heard nothing since. " * 2
        fields = {"model": self.model, "messages": [{"role": "user", "content": message}]}
        fields |= {"stream": True} if stream else {}
        fields |= {"user": f"gap:{gap_ms}"} if gap_ms else {}
        return json.dumps(fields, separators=(",", ":"))

    def all_headers(self) -> dict[str, str]:
        return {"content-type": "application/json"} | self.headers

    def rss_mb(self) -> float:
        """Resident memory of its processes and their children."""
        found = [psutil.Process(pid) for pid in self.pids]
        family = [*found, *(child for process in found for child in process.children(recursive=True))]
        return sum(process.memory_info().rss for process in family) / 1e6


class Bench:
    """Starts what is measured in `folder`, ends it again. Use as a context manager."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self._children: list[subprocess.Popen[bytes]] = []
        self._last: list[Callable[[], object]] = []

    def __enter__(self) -> Bench:
        return self

    def __exit__(self, *_: object) -> None:
        for act in reversed(self._last):
            act()
        for child in reversed(self._children):
            if child.poll() is None:
                os.killpg(child.pid, signal.SIGTERM)
        for child in self._children:
            try:
                child.wait(15)
            except subprocess.TimeoutExpired:
                os.killpg(child.pid, signal.SIGKILL)

    def spawn(self, name: str, command: Sequence[str], **env: str) -> int:
        """Starts a process group of its own; its output goes to `folder/name.log`."""
        with (self.folder / f"{name}.log").open("wb") as log:
            child = subprocess.Popen(
                command, cwd=self.folder, env=os.environ | env, stdout=log, stderr=log, start_new_session=True
            )
        self._children.append(child)
        return child.pid

    def mock(self) -> Target:
        port = free_port()
        pid = self.spawn("mock", [NODE, str(HERE / "mock.mjs"), str(port)])
        return answering(Target("upstream", f"http://127.0.0.1:{port}/v1/chat/completions", pids=[pid]))

    def ours(self, upstream: Target) -> Target:
        """A whole Stepdown in a home of its own: key check, routing, capture and ledger on, as a user has it."""
        home, port = self.folder / "home", free_port()
        env = os.environ | {"STEPDOWN_HOME": str(home), "STEPDOWN_PORT": str(port)}
        stepdown = [sys.executable, "-m", "gateway.cli"]
        subprocess.run([*stepdown, "up", "--detach"], env=env, cwd=ROOT, check=True, stdout=subprocess.DEVNULL)
        self._last.append(lambda: subprocess.run([*stepdown, "down"], env=env, cwd=ROOT, check=False))
        made = subprocess.run(
            [*stepdown, "keys", "create", "--name", "bench"], env=env, cwd=ROOT, check=True, capture_output=True
        )
        token = (home / "secrets" / "admin.token").read_text()
        with httpx.Client(base_url=f"http://127.0.0.1:{port}/api", headers={"authorization": f"Bearer {token}"}) as api:
            project = api.get("/projects").raise_for_status().json()[0]["id"]
            terms = {"train_on_output": "allowed", "judge_with": "allowed", "terms_source": "a mock of the bench"}
            prices = {"input_per_mtok": "2.5", "cached_input_per_mtok": "1.25", "output_per_mtok": "10"}
            row = {
                "name": "mock", "kind": "openai", "base_url": upstream.url.removesuffix("/chat/completions"),
                "api_key": "sk-mock", "prices": prices, **terms,
            }  # fmt: skip
            made_upstream = api.post(f"/projects/{project}/upstreams", json=row).raise_for_status().json()
            route = {"alias": "gpt-4o", "upstream_id": made_upstream["id"]}
            api.post(f"/projects/{project}/routes", json=route).raise_for_status()
        state = json.loads((home / "state.json").read_text())
        pids = [child["pid"] for child in state["children"] if child["name"] == "gateway"]
        key = {"authorization": f"Bearer {made.stdout.decode().strip()}"}

        def settled() -> bool:
            page = httpx.get(f"http://127.0.0.1:{port}/metrics").text
            waiting = next(line for line in page.splitlines() if line.startswith("stepdown_spool_waiting_bytes "))
            return float(waiting.split()[1]) == 0

        url = f"http://127.0.0.1:{port}/v1/chat/completions"
        return answering(Target("stepdown", url, key, pids=pids, settled=settled))

    def start_s(self, port: int) -> float:
        """Seconds from starting the gateway alone to its first answer, its database being there."""
        home = self.folder / "home"
        endpoints = json.loads((home / "secrets" / "endpoints.json").read_text())
        began = time.monotonic()
        pid = self.spawn(
            "start", [sys.executable, "-m", "gateway.app"], STEPDOWN_HOME=str(home), STEPDOWN_PORT=str(port),
            DATABASE_URL=endpoints["database"], PYTHONPATH=str(ROOT),
        )  # fmt: skip
        until(lambda: httpx.get(f"http://127.0.0.1:{port}/readyz", timeout=1).status_code == 200, "the gateway")
        seconds = time.monotonic() - began
        os.killpg(pid, signal.SIGTERM)
        return seconds

    def nginx(self, upstream: Target) -> Target:
        """One worker that forwards bytes: no key, no route, no record. The limit of what a proxy can do."""
        port, program = free_port(), shutil.which("nginx", path=os.environ["PATH"] + ":/usr/sbin")
        assert program, "bench/gateway/setup.sh checks for it"
        host = upstream.url.split("/")[2]
        folder = self.folder / "nginx"
        folder.mkdir()
        (folder / "nginx.conf").write_text(
            f"""daemon off; worker_processes 1; pid {folder}/pid; error_log {folder}/error.log;
            events {{ worker_connections 4096; }}
            http {{ access_log off; client_body_temp_path {folder}/b; proxy_temp_path {folder}/p;
              fastcgi_temp_path {folder}/f; uwsgi_temp_path {folder}/u; scgi_temp_path {folder}/s;
              keepalive_requests 10000000;
              upstream mock {{ server {host}; keepalive 256; keepalive_requests 10000000; }}
              server {{ listen 127.0.0.1:{port};
                location / {{ proxy_pass http://mock; proxy_http_version 1.1; proxy_set_header Connection "";
                  proxy_buffering off; }} }} }}"""
        )
        pid = self.spawn("nginx", [program, "-p", str(folder), "-c", str(folder / "nginx.conf")])
        return answering(Target("nginx", f"http://127.0.0.1:{port}/v1/chat/completions", pids=[pid]))

    def tensorzero(self, upstream: Target) -> Target:
        """Its embedded Rust gateway, without a store."""
        config = self.folder / "tensorzero.toml"
        base = upstream.url.removesuffix("chat/completions")
        config.write_text(
            f"""[gateway]
            observability.enabled = false
            [models.gpt-4o]
            routing = ["mock"]
            [models.gpt-4o.providers.mock]
            type = "openai"
            model_name = "gpt-4o"
            api_base = "{base}"
            api_key_location = "none"
            """
        )
        script = (
            "import sys, tensorzero, time\n"
            "gateway = tensorzero._start_http_gateway(config_file=sys.argv[1], clickhouse_url=None, postgres_url=None,"
            " valkey_url=None, async_setup=False)\n"
            "print(gateway.base_url, flush=True)\n"
            "time.sleep(1e6)"
        )
        pid = self.spawn("tensorzero", [str(PEERS / "venv/bin/python"), "-c", script, str(config)])
        log = self.folder / "tensorzero.log"

        def address() -> str | None:
            return next((line for line in log.read_text().splitlines() if line.startswith("http")), None)

        until(lambda: address() is not None, "tensorzero")
        target = Target("tensorzero", "", model="tensorzero::model_name::gpt-4o", pids=[pid])
        target.url = f"{address()}".removesuffix("/").removesuffix("/openai/v1") + "/openai/v1/chat/completions"
        return answering(target)

    def litellm(self, upstream: Target) -> Target:
        """Its proxy with one worker and a master key, without a database."""
        port, config = free_port(), self.folder / "litellm.yaml"
        base = upstream.url.removesuffix("/chat/completions")
        config.write_text(
            json.dumps(
                {
                    "model_list": [
                        {
                            "model_name": "gpt-4o",
                            "litellm_params": {"model": "openai/gpt-4o", "api_base": base, "api_key": "sk-mock"},
                        }
                    ],
                    "general_settings": {"master_key": "sk-bench"},
                }
            )
        )
        pid = self.spawn(
            "litellm",
            [str(PEERS / "venv/bin/litellm"), "--config", str(config), "--host", "127.0.0.1", "--port", str(port)],
            LITELLM_LOCAL_MODEL_COST_MAP="True", LITELLM_TELEMETRY="False",
        )  # fmt: skip
        key = {"authorization": "Bearer sk-bench"}
        return answering(Target("litellm", f"http://127.0.0.1:{port}/v1/chat/completions", key, pids=[pid]))

    def portkey(self, upstream: Target) -> Target:
        """Its open gateway, told by headers whom to ask."""
        port = free_port()
        server = PEERS / "portkey/node_modules/@portkey-ai/gateway/build/start-server.js"
        pid = self.spawn(
            "portkey", [NODE, "--import", str(HERE / "loopback.mjs"), str(server), f"--port={port}", "--headless"]
        )
        headers = {
            "authorization": "Bearer sk-mock",
            "x-portkey-provider": "openai",
            "x-portkey-custom-host": upstream.url.removesuffix("/chat/completions"),
        }
        return answering(Target("portkey", f"http://127.0.0.1:{port}/v1/chat/completions", headers, pids=[pid]))


def until(check: Callable[[], Any], what: str, limit_s: float = READY_S) -> None:
    """Waits until `check` is true. Raises RuntimeError after `limit_s`."""
    deadline = time.monotonic() + limit_s
    while time.monotonic() < deadline:
        try:
            if check():
                return
        except httpx.HTTPError:
            pass
        time.sleep(0.05)
    raise RuntimeError(f"{what} did not answer within {limit_s:.0f} s")


def answering(target: Target) -> Target:
    """Waits until the target gives a whole and a streamed answer."""

    def good() -> bool:
        for stream in (False, True):
            answer = httpx.post(target.url, content=target.body(stream), headers=target.all_headers(), timeout=20)
            if answer.status_code != 200 or (stream and b"[DONE]" not in answer.content):
                return False
        return True

    until(good, target.name)
    return target
