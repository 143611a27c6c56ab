"""Plain answers for jobs that the scripted teacher was not written for.

Owns a fallback: a label out of those that the instructions list, values that fit a JSON schema, or an echo.
It makes no claim to be right; it lets a second job run through the same stand-in.
"""

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

_WORD = re.compile(r"\w+")
_ROW = r"(?:[\w-]+(?: [\w-]+)?\s*[,|;/]\s*){2,}(?:or |and )?[\w-]+"
_BULLETS = r"(?:^\s*[-*]\s*[\w-]+\s*$\n?){3,}"
_LIST = re.compile(f"{_ROW}|{_BULLETS}", re.M)


def text_of(message: Mapping[str, Any]) -> str:
    """The text of a chat message, whose content is a string, a list of parts or null."""
    content = message.get("content") or ""
    if isinstance(content, str):
        return content
    return " ".join(str(part.get("text", "")) for part in content if isinstance(part, Mapping))


def last_user_text(messages: Sequence[Mapping[str, Any]]) -> str:
    return next((text_of(m) for m in reversed(messages) if m.get("role") == "user"), "")


def guess(messages: Sequence[Mapping[str, Any]], response_format: Mapping[str, Any] | None = None) -> str:
    """An answer of the right shape."""
    text = last_user_text(messages)
    instructions = " ".join(text_of(m) for m in messages if m.get("role") in ("system", "developer"))
    schema = (response_format or {}).get("json_schema", {}).get("schema")
    if isinstance(schema, Mapping):
        return json.dumps(fill(schema, text), separators=(",", ":"))
    labels = listed(instructions)
    value = nearest(labels, text) if labels else " ".join(text.split()[:12]) or "ok"
    if key := re.search(r"\{\s*\"(\w+)\"\s*:", instructions):
        return json.dumps({key[1]: value}, separators=(",", ":"))
    if "json" in instructions.lower() or (response_format or {}).get("type") == "json_object":
        return json.dumps({"label" if labels else "answer": value}, separators=(",", ":"))
    return value


def listed(instructions: str) -> list[str]:
    """The longest list of short names in the instructions, one of which is probably wanted."""
    lists = [re.split(r"\s*(?:[,|;/\n]|\bor\b|\band\b)\s*", m[0]) for m in _LIST.finditer(instructions)]
    names = [[name.strip(" -*") for name in names if name.strip(" -*")] for names in lists]
    return max(names, key=len, default=[])


def nearest(labels: Sequence[str], text: str) -> str:
    """The label that shares most word beginnings with the text; the first one if none does."""
    stems = {word[:4] for word in _WORD.findall(text.lower())}
    return max(labels, key=lambda label: sum(w[:4] in stems for w in re.findall(r"[^\W_]+", label.lower())))


def fill(schema: Mapping[str, Any], text: str) -> Any:
    """A value that fits a JSON schema of the kinds that structured output allows."""
    if "enum" in schema:
        values = schema["enum"]
        return nearest(values, text) if all(isinstance(value, str) for value in values) else values[0]
    if "anyOf" in schema:
        return fill(schema["anyOf"][0], text)
    kind = schema.get("type")
    kind = kind[0] if isinstance(kind, list) else kind
    if kind == "object":
        return {name: fill(part, text) for name, part in schema.get("properties", {}).items()}
    plain: dict[Any, Any] = {"array": [], "integer": 0, "number": 0, "boolean": False, "null": None}
    return plain.get(kind, " ".join(text.split()[:8]))
