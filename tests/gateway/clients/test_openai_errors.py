"""The openai package, unmodified: what goes wrong reaches the app as the exception it has a handler for."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import openai
import pytest

from gateway.core.ports import free_port
from tests.gateway.clients import provider
from tests.gateway.clients.shapes import TEXT
from tests.gateway.world import Reply, Seen, World, chunk, event, pause, seed, stored_calls, streamed

ASK: Any = {"model": "gpt-4o", "messages": [{"role": "user", "content": "hi"}]}
ERROR = b'{"error":{"message":"the provider says no","type":"t","param":"p","code":"c"}}'


KINDS: dict[int, type[openai.APIStatusError]] = {
    400: openai.BadRequestError, 401: openai.AuthenticationError, 403: openai.PermissionDeniedError,
    404: openai.NotFoundError, 409: openai.ConflictError, 413: openai.APIStatusError,
    422: openai.UnprocessableEntityError, 429: openai.RateLimitError, 500: openai.InternalServerError,
    503: openai.InternalServerError, 529: openai.InternalServerError,
}  # fmt: skip


def test_a_providers_error_keeps_its_class_and_words(app: openai.OpenAI, town: World) -> None:
    headers = {"content-type": "application/json", "x-request-id": "req_9", "x-should-retry": "false"}
    for status, kind in KINDS.items():
        town.upstream.reply = Reply([ERROR], status=status, headers=headers)
        for stream in (False, True):
            with pytest.raises(kind, match="the provider says no") as failed:
                app.chat.completions.create(**ASK, stream=stream)
            assert failed.value.status_code == status
            assert failed.value.request_id == "req_9"
            assert (failed.value.code, failed.value.param, failed.value.type) == ("c", "p", "t")
    calls = stored_calls()
    assert [call.status for call in calls] == [status for status in KINDS for _ in range(2)]
    assert {(call.trainable, call.error) for call in calls} == {(False, "the provider says no")}


def test_our_own_errors_have_the_same_classes(app: openai.OpenAI, town: World) -> None:
    with pytest.raises(openai.NotFoundError, match="Known: gpt-4o") as unknown:
        app.chat.completions.create(**ASK | {"model": "gpt-9"})
    assert (unknown.value.param, unknown.value.body["type"]) == ("model", "invalid_request_error")
    stranger = app.with_options(api_key="sd-wrong")
    for ask in (stranger.models.list, lambda: stranger.chat.completions.create(**ASK)):
        with pytest.raises(openai.AuthenticationError, match="not known here") as refused:
            ask()
        assert refused.value.code == "invalid_api_key"
    with pytest.raises(openai.BadRequestError, match="names no model"):
        app.chat.completions.create(**ASK | {"model": None})
    assert town.upstream.seen == []


def failing_once(**headers: str) -> Callable[[Seen], Reply]:
    """A provider that is busy at the first call, and answers the next."""
    replies = iter([Reply([ERROR], status=429, headers={"content-type": "application/json", **headers})])
    return lambda seen: next(replies, None) or provider.reply(seen)


@pytest.mark.parametrize("header", [("retry-after-ms", "7"), ("retry-after", "0.007")])
def test_the_client_retries_when_the_provider_says(
    app: openai.OpenAI, town: World, header: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    slept: list[float] = []
    monkeypatch.setattr("time.sleep", slept.append)
    town.upstream.reply = failing_once(**dict([header]))
    answer = app.chat.completions.create(**ASK)
    monkeypatch.undo()
    assert answer.choices[0].message.content == TEXT
    assert 0.007 in slept
    assert [c.status for c in stored_calls()] == [429, 200]
    assert [seen.header("x-stainless-retry-count") for seen in town.upstream.seen] == ["0", "1"]


def test_a_client_told_not_to_retry_does_not(app: openai.OpenAI, town: World) -> None:
    town.upstream.reply = Reply([ERROR], status=500, headers={"x-should-retry": "false"})
    with pytest.raises(openai.InternalServerError):
        app.chat.completions.create(**ASK)
    assert len(town.upstream.seen) == 1


def test_an_upstream_that_is_not_there(app: openai.OpenAI, town: World) -> None:
    lost = seed(f"http://127.0.0.1:{free_port()}/v1", name="lost")
    town.refresh()
    with pytest.raises(openai.InternalServerError, match="cannot be reached") as failed:
        app.with_options(api_key=lost.key, max_retries=0).chat.completions.create(**ASK)
    assert (failed.value.status_code, failed.value.code) == (502, "upstream_unreachable")


def test_an_app_without_patience(app: openai.OpenAI, town: World) -> None:
    town.upstream.reply = Reply([pause(30), b"{}"])
    with pytest.raises(openai.APITimeoutError):
        app.with_options(timeout=0.2, max_retries=0).chat.completions.create(**ASK)
    assert town.upstream.hung_up.wait(10), "nobody waits for it any more: the upstream need not go on"


def test_an_error_amid_a_stream_is_raised(app: openai.OpenAI, town: World) -> None:
    town.upstream.reply = streamed(event(chunk({"content": "It is"})), event(ERROR), event(b"[DONE]"))
    with pytest.raises(openai.APIError, match="the provider says no"):
        list(app.chat.completions.create(**ASK, stream=True))
    (call,) = stored_calls()
    assert (call.complete, call.trainable, call.error) == (False, False, "the provider says no")


def test_a_stream_that_breaks_off_is_an_error_too(app: openai.OpenAI, town: World) -> None:
    town.upstream.reply = streamed(event(chunk({"content": "It is"})), cut=True)
    seen = []
    with pytest.raises(openai.APIConnectionError):
        seen += app.chat.completions.create(**ASK, stream=True)
    (call,) = stored_calls()
    assert (call.complete, call.trainable, call.answer_preview) == (False, False, "It is")


def test_an_app_that_leaves_a_stream(app: openai.OpenAI, town: World) -> None:
    town.upstream.reply = streamed(event(chunk({"content": "It is"})), pause(30))
    with app.chat.completions.create(**ASK, stream=True) as stream:
        assert next(iter(stream)).choices[0].delta.content == "It is"
    assert town.upstream.hung_up.wait(10)
    app.close()
    (call,) = stored_calls()
    assert (call.complete, call.trainable) == (False, False)
