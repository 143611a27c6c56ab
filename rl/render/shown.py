"""Owns what a chat template is shown: exactly what vLLM shows it when started with the flags of `rl.rollout.server`.

Which fields of a message there are is `gateway.core.messages.plain`'s to say; here they become the template's values:
text content, tool arguments as objects, tools with every field that vLLM gives them. Must not know a tokenizer.
"""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from gateway.core.messages import plain

Message = Mapping[str, Any]
_VENDOR_LINE = "x-anthropic-billing-header"
"""A line that one client puts before its system prompt, different each time: vLLM leaves it out, so it is here too."""


class RenderError(ValueError):
    """These messages cannot be put before this model; the message says which part and why."""


def shown(messages: Sequence[Message], template: str) -> list[dict[str, Any]]:
    """The messages as the template gets them. Raises RenderError for a part that is no text."""
    result = [_message(message) for message in messages]
    if any(message["role"] == "developer" for message in result) and not _names_developers(template):
        return _one_system(result)
    return result


def shown_tools(tools: Sequence[Mapping[str, Any]] | None) -> list[dict[str, Any]] | None:
    """The tools as the template gets them: a description and parameters that are missing are null."""
    return [_tool(tool) for tool in tools] if tools else None


def _message(message: Message) -> dict[str, Any]:
    kept = plain(message)
    role, content = str(kept.get("role")), kept.get("content", "")
    if not isinstance(content, str):
        kinds = {part.get("type") for part in content if isinstance(part, Mapping)} - {"text"}
        raise RenderError(f"a message has a part of type {', '.join(map(repr, kinds))}: only text can be rendered")
    if role == "system" and content.startswith(_VENDOR_LINE):
        content = content.partition("\n")[2]
    result: dict[str, Any] = {"role": role, "content": content}
    if role == "assistant" and kept.get("tool_calls"):
        result["tool_calls"] = [_tool_call(call) for call in kept["tool_calls"]]
    if role == "tool" and "tool_call_id" in kept:
        result["tool_call_id"] = kept["tool_call_id"]
    if isinstance(kept.get("name"), str):
        result["name"] = kept["name"]
    if role == "developer":
        result["tools"] = None
    return result


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    """A call of an earlier turn. Arguments that are no JSON object are an empty one: the conversation goes on."""
    function = call["function"]
    told = {"arguments": arguments_of(function.get("arguments")) or {}, "name": function.get("name")}
    return {"id": call["id"], "function": told, "type": "function"}  # vLLM's order: some templates print it


def arguments_of(given: object) -> dict[str, Any] | None:
    """A tool call's arguments as an object; None where they are none."""
    if isinstance(given, str):
        try:
            given = json.loads(given) if given else {}
        except ValueError:
            return None
    return given if isinstance(given, dict) else None


def _tool(tool: Mapping[str, Any]) -> dict[str, Any]:
    function = tool.get("function") or {}
    told = {name: function.get(name) for name in ("name", "description", "parameters")}
    if function.get("strict") is not None:
        told["strict"] = function["strict"]
    return {"type": "function", "function": told}


def _names_developers(template: str) -> bool:
    return "'developer'" in template or '"developer"' in template


def _one_system(messages: Sequence[dict[str, Any]]) -> list[dict[str, Any]]:
    """Developers' messages as system messages, and all of those as one at the beginning."""
    ruling = [message for message in messages if message["role"] in ("system", "developer")]
    if len(ruling) == 1 and messages[0] is ruling[0]:
        rest = [{name: value for name, value in messages[0].items() if name != "tools"} | {"role": "system"}]
        return [*rest, *messages[1:]]
    text = "\n\n".join(message["content"] for message in ruling if message["content"])
    others = [message for message in messages if message["role"] not in ("system", "developer")]
    return [{"role": "system", "content": text}, *others]
