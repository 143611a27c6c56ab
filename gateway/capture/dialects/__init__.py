"""The dialects whose calls are kept whole: how each streams, and how it says what a chat request and its answer say."""

from __future__ import annotations

from gateway.capture.dialects import chat, completions, messages, responses
from gateway.capture.dialects.base import Assembly, Dialect

__all__ = ["Assembly", "Dialect", "dialect_of"]

_CHAT = Dialect("messages", chat.as_chat, chat.whole, chat.ChatAssembly)
_DIALECTS = {
    "completions": Dialect(None, completions.as_chat, completions.whole, completions.CompletionAssembly),
    "responses": Dialect("input", responses.as_chat, responses.whole, responses.ResponseAssembly),
    "messages": Dialect("messages", messages.as_chat, messages.whole, messages.MessageAssembly),
}


def dialect_of(endpoint: str) -> Dialect:
    """The dialect of an endpoint, by the name that its calls are recorded under."""
    return _DIALECTS.get(endpoint, _CHAT)
