"""Owns the proof that nothing is lost: calls from several clients while processes are killed, then a count."""

from __future__ import annotations

import asyncio
import json
import os
import random
import signal
import time
from collections.abc import Callable
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path

import aiohttp
import psycopg

from bench.capture.repository import Counted, count
from bench.gateway.peers import Target

CLIENTS = 16
VICTIMS = ("gateway", "writer", "postgres")
_PATIENCE_S = 180.0


@dataclass
class Answered:
    """What clients saw: `ids` by marker of every call whose last byte came; `tries`, answered or not."""

    wanted: int
    ids: dict[str, str] = field(default_factory=dict)
    tries: int = 0
    kills: dict[str, int] = field(default_factory=dict)

    @property
    def done(self) -> bool:
        return len(self.ids) >= self.wanted


async def run(target: Target, home: Path, calls: int, seed: int, told: Callable[[Answered], None]) -> Answered:
    """Sends until `calls` were answered, a third of them streamed, killing at random times meanwhile."""
    seen = Answered(calls)
    async with aiohttp.ClientSession(timeout=aiohttp.ClientTimeout(total=30)) as session:
        clients = [asyncio.create_task(_client(session, target, seen, n)) for n in range(CLIENTS)]
        killer = asyncio.create_task(_killer(home, seen, random.Random(seed)))
        while not seen.done:
            told(seen)
            await asyncio.sleep(0.5)
        killer.cancel()
        with suppress(asyncio.CancelledError):
            await killer
        await asyncio.gather(*clients)
    told(seen)
    return seen


async def _client(session: aiohttp.ClientSession, target: Target, seen: Answered, number: int) -> None:
    while not seen.done:
        seen.tries += 1
        marker = f"call {number}-{seen.tries}"
        body = json.loads(target.body(stream=seen.tries % 3 == 0))
        body["messages"] = [{"role": "user", "content": marker}]
        try:
            async with session.post(target.url, json=body, headers=target.headers) as answer:
                received = await answer.read()
                whole = b"[DONE]" in received if body.get("stream") else bool(received)
                if answer.status == 200 and whole:
                    seen.ids[marker] = answer.headers["x-stepdown-request-id"]
        except (aiohttp.ClientError, TimeoutError, OSError):
            await asyncio.sleep(0.05)


async def _killer(home: Path, seen: Answered, chance: random.Random) -> None:
    while True:
        await asyncio.sleep(chance.uniform(1.0, 5.0))
        victim = chance.choice(VICTIMS)
        state = json.loads((home / "state.json").read_text())
        for child in state["children"]:
            if child["name"] == victim and child["state"] == "ready":
                with suppress(ProcessLookupError):
                    os.kill(child["pid"], signal.SIGKILL)
                    seen.kills[victim] = seen.kills.get(victim, 0) + 1


def settled(home: Path, url: str, seen: Answered) -> Counted:
    """What the database holds once everything that was answered is there, or after three minutes."""
    deadline = time.monotonic() + _PATIENCE_S
    while True:
        with suppress(psycopg.OperationalError):
            found = count(url, seen.ids)
            writer = json.loads((home / "spool" / "writer.json").read_text())
            if writer["waiting_bytes"] == 0 and not (found.calls_lost or found.charges_lost):
                return found
            if time.monotonic() > deadline:
                return found
        time.sleep(1)
