"""Gateways as processes of their own, as the supervisor starts them."""

from __future__ import annotations

import os
import re
import signal
import socket
import subprocess
import sys
from contextlib import suppress
from pathlib import Path

import httpx
import psutil

from gateway.core.ports import free_port
from tests.gateway.world import until


class GatewayProcess:
    """`python -m gateway.app`, with the environment of the test and `env`. Use as a context manager."""

    def __init__(self, log: Path, port: int | None = None, **env: str) -> None:
        self.port = port or free_port()
        self.url = f"http://127.0.0.1:{self.port}"
        self.log = log
        with log.open("ab") as output:
            self.process = subprocess.Popen(
                [sys.executable, "-m", "gateway.app"],
                env={**os.environ, "STEPDOWN_PORT": str(self.port), **env},
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    def __enter__(self) -> GatewayProcess:
        until(self.ready, 60)
        return self

    def __exit__(self, *_: object) -> None:
        if self.process.poll() is None:
            self.process.kill()
        self.process.wait()

    def ready(self) -> bool:
        """Whether this process, not another on its port, has said that it is ready."""
        assert self.process.poll() is None, self.said()
        with suppress(httpx.HTTPError), httpx.Client() as client:
            answer = client.get(f"{self.url}/readyz")
            return answer.status_code == 200
        return False

    def serves(self, connection: Connection) -> bool:
        """Whether the connection is with this process."""
        with suppress(psutil.NoSuchProcess):
            mine = psutil.Process(self.process.pid).net_connections("tcp")
            return any(c.raddr and c.raddr.port == connection.own_port for c in mine)
        return False

    def terminate(self) -> None:
        self.process.send_signal(signal.SIGTERM)

    def said(self) -> str:
        return self.log.read_text()


class Connection:
    """A client that reads bytes."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=20)
        self.own_port: int = self.socket.getsockname()[1]
        self.received = b""

    def ask(self, key: str, body: bytes, path: str = "/v1/chat/completions") -> None:
        head = f"POST {path} HTTP/1.1\r\nhost: x\r\nauthorization: Bearer {key}\r\ncontent-length: {len(body)}\r\n\r\n"
        self.socket.sendall(head.encode() + body)

    def read_until(self, text: bytes) -> bytes:
        """All that has come, once `text` is in it."""
        while text not in self.received:
            piece = self.socket.recv(65536)
            assert piece, self.received
            self.received += piece
        return self.received

    def rest(self) -> bytes:
        """All that comes until the other side closes, in a proper way or not."""
        with suppress(ConnectionError):
            while piece := self.socket.recv(65536):
                self.received += piece
        return self.received

    def close(self) -> None:
        self.socket.close()


def header(answer: bytes, name: str) -> str:
    """A header of an answer."""
    found = re.search(rf"^{name}: (.*)\r$".encode(), answer, re.MULTILINE)
    assert found, answer
    return found[1].decode()
