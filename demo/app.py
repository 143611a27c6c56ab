"""The customer's app: triages support messages with the `openai` client, as it would without Stepdown.

Owns nothing but its own job. It is given a base URL and a key as any OpenAI app is, and need not know who
answers; `--show` prints the response header that says so.

    python -m demo.app --n 20 --base-url http://127.0.0.1:8787/v1 --api-key sd-...
"""

import argparse
import os
import sys
import time
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor, as_completed
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

import openai
from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from demo import grammar

MODEL = "frontier-large"
SERVED_BY = "x-stepdown-served-by"
STREAM_EVERY = 3  # every third message is streamed

# Reasoning models refuse a temperature: DEMO_TEMPERATURE= (empty) leaves it out.
TEMPERATURE = os.environ.get("DEMO_TEMPERATURE", "0")
OPTIONS: dict[str, Any] = {"temperature": float(TEMPERATURE)} if TEMPERATURE else {}


@dataclass(frozen=True)
class Endpoint:
    """Where the app sends its calls, with which key, under which model name."""

    base_url: str
    api_key: str
    model: str = MODEL


@dataclass(frozen=True)
class Message:
    """One customer's message, and whether the app wants its answer streamed."""

    id: str
    text: str
    stream: bool


@dataclass(frozen=True)
class Answer:
    """What came back: the text, or the error in words, and how long it took (seconds)."""

    message: Message
    text: str
    error: str | None
    seconds: float
    first_seconds: float | None  # to the first streamed text
    served_by: str | None
    model: str | None
    prompt_tokens: int
    completion_tokens: int


def inbox(tickets: Iterable[grammar.Ticket]) -> list[Message]:
    """Tickets as the app gets them: without their truth."""
    return [Message(t.id, t.text, i % STREAM_EVERY == 0) for i, t in enumerate(tickets)]


def triage(client: openai.OpenAI, model: str, message: Message) -> Answer:
    """Asks for one message. Errors of the API are part of the answer, not raised."""
    request: dict[str, Any] = {
        "model": model,
        "messages": grammar.messages(message.text),
        "max_completion_tokens": 200,
        **OPTIONS,
    }
    if message.stream:
        request |= {"stream": True, "stream_options": {"include_usage": True}}
    started = time.perf_counter()
    try:
        raw = client.chat.completions.with_raw_response.create(**request)
        served_by = raw.headers.get(SERVED_BY)
        reply: Any = raw.parse()
        text, named, usage, first = _streamed(reply, started) if message.stream else _whole(reply)
    except openai.OpenAIError as error:
        seconds = time.perf_counter() - started
        return Answer(message, "", f"{type(error).__name__}: {error}", seconds, None, None, None, 0, 0)
    seconds = time.perf_counter() - started
    counted = (usage.prompt_tokens, usage.completion_tokens) if usage else (0, 0)
    return Answer(message, text, None, seconds, first, served_by, named, *counted)


def _whole(reply: Any) -> tuple[str, str, Any, float | None]:
    return reply.choices[0].message.content or "", reply.model, reply.usage, None


def _streamed(stream: Any, started: float) -> tuple[str, str, Any, float | None]:
    text, model, usage, first = "", "", None, None
    for chunk in stream:
        model, usage = chunk.model, chunk.usage or usage
        piece = (chunk.choices[0].delta.content or "") if chunk.choices else ""
        if piece and first is None:
            first = time.perf_counter() - started
        text += piece
    return text, model, usage, first


def triage_all(
    messages: Sequence[Message],
    endpoint: Endpoint,
    *,
    threads: int = 16,
    each: Callable[[Answer], None] = lambda _: None,
) -> list[Answer]:
    """Answers in the order of the messages; `each` is called as they come."""
    client = openai.OpenAI(base_url=endpoint.base_url, api_key=endpoint.api_key)
    with client, ThreadPoolExecutor(threads) as pool:
        jobs = [pool.submit(triage, client, endpoint.model, message) for message in messages]
        try:
            for job in as_completed(jobs):
                each(job.result())
        except BaseException:
            pool.shutdown(cancel_futures=True)
            raise
    return [job.result() for job in jobs]


def progress(console: Console) -> Progress:
    """The bar that the app shows while it works."""
    return Progress(
        TextColumn("[bold]{task.description}"),
        BarColumn(bar_width=40),
        MofNCompleteColumn(),
        TimeElapsedColumn(),
        TextColumn("[dim]{task.fields[note]}"),
        console=console,
    )


def run(
    messages: Sequence[Message], endpoint: Endpoint, console: Console, *, threads: int, title: str = "messages"
) -> list[Answer]:
    """`triage_all` with a progress bar."""
    failed = 0
    with progress(console) as bar:
        line = bar.add_task(title, total=len(messages), note="")

        def each(answer: Answer) -> None:
            nonlocal failed
            failed += answer.error is not None
            bar.update(line, advance=1, note=f"{failed} failed" if failed else "")

        return triage_all(messages, endpoint, threads=threads, each=each)


def main() -> int:
    parser = argparse.ArgumentParser(prog="demo.app", description="Triages generated customer messages.")
    parser.add_argument("--n", type=int, default=20, help="messages")
    parser.add_argument("--seed", type=int, default=1, help="which messages")
    parser.add_argument("--base-url", default=os.environ.get("OPENAI_BASE_URL", "http://127.0.0.1:8787/v1"))
    parser.add_argument("--api-key", default=os.environ.get("OPENAI_API_KEY"))
    parser.add_argument("--model", default=MODEL)
    parser.add_argument("--threads", type=int, default=8)
    parser.add_argument("--show", action="store_true", help="print each answer and who gave it")
    options = parser.parse_args()
    if not options.api_key:
        parser.error("no key: give --api-key or set OPENAI_API_KEY (`stepdown keys create` makes one)")
    console = Console()
    endpoint = Endpoint(options.base_url, options.api_key, options.model)
    answers = run(inbox(grammar.generate(options.n, options.seed)), endpoint, console, threads=options.threads)
    for answer in answers if options.show else []:
        console.print(answer.message.text, style="dim", markup=False, highlight=False)
        said = answer.error or answer.text
        console.print(f"  {said}  ({answer.served_by or 'no header'}, {answer.seconds:.2f} s)", markup=False)
    errors = [answer.error for answer in answers if answer.error]
    console.print(f"{len(answers) - len(errors)} answered, {len(errors)} failed")
    if errors:
        console.print(f"first error: {errors[0]}", style="red", markup=False)
    return 1 if errors else 0


if __name__ == "__main__":
    with suppress(KeyboardInterrupt):
        sys.exit(main())
    sys.exit(130)
