"""Owns the choice of loopback ports, and remembers it. Must not listen on any itself."""

from __future__ import annotations

import socket
from contextlib import suppress
from pathlib import Path

import psutil


def is_free(port: int, host: str = "127.0.0.1") -> bool:
    """Whether a server could listen on the port now."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    with socket.socket(family) as probe:
        # As servers do: a port whose last connections linger in TIME_WAIT counts as free.
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind((host, port))
            probe.listen(1)
        except OSError:
            return False
    return True


def free_port() -> int:
    """A port that the kernel says is free. It may be taken before you use it: be ready to ask again."""
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
    return port


def remembered_port(file: Path) -> int:
    """The port noted in `file` if it is still free, else a new one, noted there."""
    with suppress(FileNotFoundError, ValueError):
        port = int(file.read_text())
        if 0 < port < 65536 and is_free(port):
            return port
    port = free_port()
    file.write_text(f"{port}\n")
    return port


def holder(port: int) -> str:
    """Who listens on a port, in words: `nginx (pid 17)`, or `another program` when the kernel will not say."""
    with suppress(psutil.Error):
        for connection in psutil.net_connections("tcp"):
            listening = connection.status == psutil.CONN_LISTEN and tuple(connection.laddr)[1:] == (port,)
            if listening and connection.pid is not None:
                return f"{psutil.Process(connection.pid).name()} (pid {connection.pid})"
    return "another program"
