"""What the provider of these tests always says, and how it fills in a schema."""

from __future__ import annotations

from typing import Any

TEXT = "It is sunny in Østerås \U0001f31e today."
WORD = "Oslo"
NUMBER = 21
USAGE = (20, 6)
"""Tokens of the prompt and of the completion, in every answer."""


def parts(text: str, size: int = 5) -> list[str]:
    """A text in the pieces that a stream brings it in."""
    return [text[at : at + size] for at in range(0, len(text), size)]


def filled(schema: dict[str, Any], root: dict[str, Any] | None = None) -> Any:
    """A value of a JSON schema: WORD for text, NUMBER for numbers, one item in a list, the first of several kinds."""
    root = root or schema
    if "$ref" in schema:
        found: Any = root
        for name in schema["$ref"].removeprefix("#/").split("/"):
            found = found[name]
        return filled(found, root)
    for several in ("anyOf", "oneOf", "allOf"):
        if several in schema:
            return filled(schema[several][0], root)
    if "enum" in schema or "const" in schema:
        return schema.get("const", (schema.get("enum") or [None])[0])
    kind = schema.get("type")
    if kind == "object":
        return {name: filled(inner, root) for name, inner in schema.get("properties", {}).items()}
    if kind == "array":
        return [filled(schema.get("items", {}), root)]
    return {"string": WORD, "integer": NUMBER, "number": NUMBER, "boolean": True}.get(kind)
