"""What Stepdown kept of the calls that a client made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from gateway.capture.bodies import load_request, load_response
from gateway.core.db import session_scope
from gateway.models import Call
from tests.gateway.clients.shapes import USAGE
from tests.gateway.world import charges, stored_calls


@dataclass(frozen=True)
class Captured:
    """One stored call and its bodies."""

    call: Call
    request: dict[str, Any]
    response: dict[str, Any]

    @property
    def message(self) -> dict[str, Any]:
        """The first choice's message of a chat completion."""
        message: dict[str, Any] = self.response["choices"][0]["message"]
        return message


def captured() -> list[Captured]:
    """Every call that the provider answered, oldest first, each whole, charged once and with the provider's usage."""
    calls = [call for call in stored_calls() if call.served_by == "upstream"]
    assert sorted(c.id for c in calls) == sorted(charge.call_id for charge in charges())
    found = []
    for call in calls:
        with session_scope() as session:
            found.append(Captured(call, load_request(session, call) or {}, load_response(session, call) or {}))
        assert (call.status, call.complete, call.error) == (200, True, None)
        expected = (USAGE[0], 0) if call.endpoint == "embeddings" else USAGE
        assert (call.prompt_tokens, call.completion_tokens) == expected
    return found
