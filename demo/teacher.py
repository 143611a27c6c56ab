"""The scripted teacher as a process of its own: a stand-in frontier model behind OpenAI's chat wire.

Owns the HTTP side: key, routes, pace of the answers. What it answers is `demo.teacher_rules`', how it judges
`demo.judging`'s. It is no frontier model and says so wherever a name is shown.

    python -m demo.teacher --port 8790 --delay-ms 700
"""

import argparse
import asyncio
import hmac
import json
import os
import random
import signal
import sys
from collections.abc import AsyncIterator
from typing import Any

from aiohttp import web

from demo import judging, teacher_rules, wire
from demo.guessing import last_user_text

KEY_VARIABLE = "DEMO_TEACHER_KEY"
DEFAULT_KEY = "sk-stand-in"
MAX_BODY = 32 * 2**20

# USD per million tokens, in the range that frontier models are sold at; an assumption of the demo.
PRICES: dict[str, Any] = {
    "model": wire.MODEL,
    "currency": "USD",
    "per": "1M tokens",
    "input": "2.50",
    "cached_input": "0.25",
    "output": "15.00",
    "note": "stand-in: these prices are the demo's assumption, not a provider's offer",
}


class Teacher:
    """Answers and judges. `delay_ms`, `judge_delay_ms`: medians of a log-normal time to the whole answer."""

    def __init__(self, *, key: str, seed: int, delay_ms: float, judge_delay_ms: float) -> None:
        self.key = key
        self.seed = seed
        self.delay_ms = delay_ms
        self.judge_delay_ms = judge_delay_ms
        self.random = random.Random(seed)
        self.answered = 0
        self.judged = 0

    def app(self) -> web.Application:
        app = web.Application(client_max_size=MAX_BODY, middlewares=[self._guard])
        app.router.add_post("/v1/chat/completions", self.chat)
        app.router.add_get("/v1/models", self.models)
        app.router.add_get("/v1/models/{name}", self.one_model)
        app.router.add_get("/prices", self.prices)
        app.router.add_get("/healthz", self.health)
        return app

    @web.middleware  # type: ignore[untyped-decorator]  # aiohttp leaves it untyped
    async def _guard(self, request: web.Request, handler: Any) -> web.StreamResponse:
        try:
            if request.path.startswith("/v1"):
                self._check_key(request.headers.get("authorization", ""))
            response: web.StreamResponse = await handler(request)
        except wire.WireError as error:
            response = web.json_response(error.body, status=error.status)
        except web.HTTPException as error:
            refusal = wire.WireError(error.status, f"{error.reason}: {request.method} {request.path}")
            response = web.json_response(refusal.body, status=error.status)
        if not response.prepared:
            response.headers.update(_headers(wire.new_id()))
        return response

    def _check_key(self, authorization: str) -> None:
        sent = authorization.removeprefix("Bearer ").encode()
        if not hmac.compare_digest(sent, self.key.encode()):
            raise wire.WireError(
                401, f"Incorrect API key; the stand-in's is in {KEY_VARIABLE}.", code="invalid_api_key"
            )

    async def chat(self, request: web.Request) -> web.StreamResponse:
        chat = wire.parse(await request.read())
        text, delay = self.answer(chat)
        request_id = wire.new_id()
        if not chat.stream:
            await asyncio.sleep(delay)
            return web.json_response(wire.completion(chat, text, request_id))
        headers = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        response = web.StreamResponse(headers={**headers, **_headers(request_id)})
        # A model thinks first and then writes at an even pace.
        await asyncio.sleep(0.45 * delay)
        await response.prepare(request)
        async for event in _paced(list(wire.chunks(chat, text, request_id)), 0.55 * delay):
            await response.write(event)
        await response.write_eof()
        return response

    def answer(self, chat: wire.ChatRequest) -> tuple[str, float]:
        """The answer and the seconds it takes."""
        spread = self.random.lognormvariate(0, 0.35)
        if judging.is_judging(chat.response_format):
            self.judged += 1
            try:
                text = judging.verdicts(last_user_text(chat.messages), self.seed)
            except ValueError:
                text = '{"verdicts":[]}'
            return text, self.judge_delay_ms / 1000 * spread
        self.answered += 1
        text = teacher_rules.reply(chat.messages, self.seed, chat.response_format)
        return text, self.delay_ms / 1000 * spread

    async def models(self, _: web.Request) -> web.Response:
        return web.json_response({"object": "list", "data": [wire.model(wire.MODEL), wire.model(wire.SNAPSHOT)]})

    async def one_model(self, request: web.Request) -> web.Response:
        name = request.match_info["name"]
        if name not in (wire.MODEL, wire.SNAPSHOT):
            raise wire.WireError(404, f"The model `{name}` does not exist here.", code="model_not_found")
        return web.json_response(wire.model(name))

    async def prices(self, _: web.Request) -> web.Response:
        return web.json_response(PRICES)

    async def health(self, _: web.Request) -> web.Response:
        return web.json_response({"stand_in": True, "answered": self.answered, "judged": self.judged})


async def _paced(events: list[bytes], seconds: float) -> AsyncIterator[bytes]:
    pause = seconds / len(events)
    for event in events:
        yield event
        if pause > 0.0005:
            await asyncio.sleep(pause)


def _headers(request_id: str) -> dict[str, str]:
    return {"x-request-id": f"req_{request_id}", "x-stand-in": "scripted teacher of the Stepdown demo"}


async def serve(teacher: Teacher, host: str, port: int, *, with_parent: bool = False) -> None:
    """Serves until SIGTERM or SIGINT; prints one JSON line with the address once it listens.

    `with_parent`: also until standard input closes, which is when the process that holds its other end dies.
    """
    stop = asyncio.Event()
    if with_parent:
        asyncio.get_running_loop().add_reader(sys.stdin, _on_input, stop)
    for name in (signal.SIGTERM, signal.SIGINT):
        asyncio.get_running_loop().add_signal_handler(name, stop.set)
    runner = web.AppRunner(teacher.app(), access_log=None)
    await runner.setup()
    site = web.TCPSite(runner, host, port, backlog=256)
    try:
        await site.start()
        bound = runner.addresses[0][1]
        print(json.dumps({"stand_in": wire.MODEL, "base_url": f"http://{host}:{bound}/v1"}), flush=True)
        await stop.wait()
    finally:
        await runner.cleanup()


def _on_input(stop: asyncio.Event) -> None:
    if not os.read(sys.stdin.fileno(), 1024):
        asyncio.get_running_loop().remove_reader(sys.stdin)
        stop.set()


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo.teacher", description=__doc__.splitlines()[0] if __doc__ else "")
    parser.add_argument("--host", default="127.0.0.1")
    parser.add_argument("--port", type=int, default=0, help="0 takes a free one")
    parser.add_argument("--delay-ms", type=float, default=700, help="median time of an answer")
    parser.add_argument("--judge-delay-ms", type=float, default=900, help="median time of a judgement")
    parser.add_argument("--seed", type=int, default=7, help="which messages it slips on")
    parser.add_argument("--with-parent", action="store_true", help="end when standard input closes")
    options = parser.parse_args()
    teacher = Teacher(
        key=os.environ.get(KEY_VARIABLE, DEFAULT_KEY),
        seed=options.seed,
        delay_ms=options.delay_ms,
        judge_delay_ms=options.judge_delay_ms,
    )
    try:
        asyncio.run(serve(teacher, options.host, options.port, with_parent=options.with_parent))
    except OSError as error:
        print(f"teacher: cannot listen on {options.host}:{options.port}: {error}; try --port 0", file=sys.stderr)
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
