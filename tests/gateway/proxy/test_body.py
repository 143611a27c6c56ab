"""Reading a body: whole, within the limit, whatever the pieces."""

from __future__ import annotations

import asyncio

import pytest

from gateway.core.errors import StepdownError
from gateway.proxy.body import read_body
from gateway.proxy.headers import ClientHeaders


def sender(*pieces: bytes, hangs_up: bool = False):
    messages = [{"type": "http.request", "body": p, "more_body": i < len(pieces) - 1} for i, p in enumerate(pieces)]
    if hangs_up:
        messages[-1] = {"type": "http.disconnect"}
    rest = iter(messages)

    async def receive():
        try:
            return next(rest)
        except StopIteration:
            await asyncio.sleep(60)  # as a server does once the body is read: it waits for the client to go

    return receive


async def read(*pieces: bytes, length: int | None = None, **options):
    headers = ClientHeaders([(b"content-length", b"%d" % length)] if length is not None else [])
    async with asyncio.timeout(2):
        return await read_body(sender(*pieces, **options), headers, limit=10)


async def test_pieces_are_joined() -> None:
    assert await read(b"") == b""
    assert await read(b"0123456789") == b"0123456789"
    assert await read(b"01", b"", b"23") == b"0123"


@pytest.mark.parametrize("pieces", [[b"x" * 11], [b"x" * 10, b"x"], [b"x" * 11, b"x"], [b"x" * 6] * 50])
@pytest.mark.parametrize("announced", [False, True])
async def test_too_much_is_refused_and_never_waited_for(pieces: list[bytes], announced: bool) -> None:
    with pytest.raises(StepdownError) as refused:
        await read(*pieces, length=sum(map(len, pieces)) if announced else None)
    assert refused.value.status == 413


async def test_a_client_that_goes_away_is_no_request() -> None:
    assert await read(b"01", b"23", hangs_up=True) is None
