"""A task that the tiny model can be taught, a judge that speaks the judge's wire, and a run over both."""

from __future__ import annotations

import json
import threading
from collections.abc import Callable, Iterator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from uuid import UUID

import pytest

from gateway.core.db import session_scope
from gateway.core.settings import settings
from gateway.models import Run
from gateway.runs.service import create_run
from tests import seeded
from tests.rl.conftest import make_tiny_model

CONFIG: dict[str, Any] = {
    "warm_start_steps": 6,
    "sft_batch": 8,
    "sft_all_steps": 6,
    "sft_validate_every": 3,
    "sft_patience": 3,
    "sft_lr": 0.02,
    "grpo_steps": 4,
    "grpo_prompts": 4,
    "grpo_group": 4,
    "grpo_validate_every": 2,
    "validation_rows": 8,
    "lora_rank": 4,
    "lora_alpha": 8,
}


def truth(text: str) -> str:
    """The label of a ticket: whether its number is even."""
    return "a" if int(text.rsplit(maxsplit=1)[-1]) % 2 == 0 else "b"


class Judge:
    """An upstream that judges by `truth`. `broken`: answers 500. It keeps what it was asked."""

    def __init__(self) -> None:
        self.asked: list[dict[str, Any]] = []
        self.broken = False
        self.grade: Callable[[str, str], float] = lambda output, right: float(output.strip() == right)
        judge = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = json.loads(self.rfile.read(int(self.headers["content-length"])))
                judge.asked.append(body)
                answer = json.dumps({"error": {"message": "broken"}} if judge.broken else judge.answer(body)).encode()
                self.send_response(500 if judge.broken else 200)
                self.send_header("content-type", "application/json")
                self.send_header("content-length", str(len(answer)))
                self.end_headers()
                self.wfile.write(answer)

            def log_message(self, *_: object) -> None: ...

        self.server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, daemon=True).start()

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server.server_port}/v1"

    def answer(self, body: dict[str, Any]) -> dict[str, Any]:
        question = json.loads(body["messages"][-1]["content"])
        right = truth(question["task"]["messages"][-1]["content"])
        names = [criterion["name"] for criterion in question["criteria"]]
        verdicts = [
            {
                "id": candidate["id"],
                "criteria": dict.fromkeys(names, self.grade(candidate["output"], right)),
                "vetoes": {},
                "reason": f"the right label is {right}",
            }
            for candidate in question["candidates"]
        ]
        message = {"role": "assistant", "content": json.dumps({"verdicts": verdicts})}
        return {
            "id": "j",
            "object": "chat.completion",
            "created": 0,
            "model": body["model"],
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 100, "completion_tokens": 20, "total_tokens": 120},
        }


@pytest.fixture
def judge() -> Iterator[Judge]:
    server = Judge()
    yield server
    server.server.shutdown()
    server.server.server_close()


@pytest.fixture(scope="session")
def tiny_base(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return make_tiny_model(tmp_path_factory.mktemp("base") / "tiny")


@pytest.fixture
def run_id(database: str, home: Path, tiny_base: Path, judge: Judge, monkeypatch: pytest.MonkeyPatch) -> UUID:
    """A queued run of a task with 160 calls, on the tiny model, sampled in the trainer itself."""
    monkeypatch.setenv("STEPDOWN_BASE_MODEL", "tiny")
    monkeypatch.setenv("STEPDOWN_SAMPLER", "local")
    settings.cache_clear()
    settings().models_dir.mkdir(parents=True)
    (settings().models_dir / "tiny").symlink_to(tiny_base)
    with session_scope() as session:
        owner = seeded.project(session)
        teacher = seeded.upstream(session, owner, base_url=judge.url)
        seeded.price(session, teacher, "2")
        task = seeded.task(session, owner)
        for number in range(160):
            text = f"ticket {number}"
            seeded.call(session, task, teacher, text, truth(text), system="a or b?")
        return create_run(session, owner.id, task.id, config=CONFIG).id


def row(run_id: UUID) -> Run:
    """The run as it is now."""
    with session_scope() as session:
        return session.get_one(Run, run_id)
