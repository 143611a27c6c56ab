"""Owns turning messages into tokens: the one renderer that SFT, rollouts and serving share (law 4).

It shows the chat template exactly what vLLM shows it when started with `--chat-template-content-format string`: null
content as "", text parts joined by newlines, tool arguments as objects. Must not truncate, and never re-tokenises
what a sampler sampled.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from rl.types import Datum, MaskError, Sample

Message = Mapping[str, Any]


class RenderError(ValueError):
    """These messages cannot be put before this model; the message says which part and why."""


class Renderer:
    """A model folder's tokenizer and chat template."""

    def __init__(self, model_dir: Path | str) -> None:
        self.model_dir = Path(model_dir)
        self._tokenizer = AutoTokenizer.from_pretrained(self.model_dir)
        template = self._tokenizer.chat_template
        if not isinstance(template, str):
            raise RenderError(f"{self.model_dir} has no chat template: choose an instruct model")
        config = AutoConfig.from_pretrained(self.model_dir)
        self.template_hash = hashlib.sha256(template.encode()).hexdigest()
        self.max_context = int(getattr(config, "max_position_embeddings", 0) or 0)
        self.eos_ids = self._all_eos(config)
        if not self.eos_ids:
            raise RenderError(f"{self.model_dir} names no end-of-turn token: its answers would never end")

    def prompt(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None) -> list[int]:
        """Token ids of the conversation with the assistant's turn opened. Raises RenderError."""
        return self._encode(self._text(messages, tools, opened=True))

    def example(
        self, messages: Sequence[Message], target: str | Message, tools: Sequence[Mapping[str, Any]] | None = None
    ) -> Datum:
        """Prompt and the assistant's answer with its end of turn; only the answer is trained. Raises RenderError."""
        answer: Message = {"role": "assistant", "content": target} if isinstance(target, str) else target
        before = self._text(messages, tools, opened=True)
        after = self._text([*messages, answer], tools, opened=False)
        if not after.startswith(before):
            raise RenderError(
                "the chat template changes earlier turns when an answer follows: prompt and training differ"
            )
        # Tokenised apart from the prompt, because that is where the sampler starts.
        completion = self._through_end_of_turn(self._encode(after[len(before) :]))
        prompt = self._encode(before)
        return Datum(prompt + completion, [0.0] * len(prompt) + [1.0] * len(completion))

    def rollout(self, prompt: Sequence[int], sample: Sample, advantage: float, group: int = 0) -> Datum:
        """A sampled completion as it was sampled: the sampler's own ids and log-probs."""
        if not sample.tokens or len(sample.logprobs) != len(sample.tokens):
            raise MaskError(f"a rollout of {len(sample.tokens)} tokens with {len(sample.logprobs)} log-probs")
        zeros = [0.0] * len(prompt)
        return Datum(
            [*prompt, *sample.tokens],
            zeros + [1.0] * len(sample.tokens),
            advantage=advantage,
            sampler_logprobs=[*zeros, *sample.logprobs],
            group=group,
        )

    def decode(self, ids: Sequence[int]) -> str:
        """The text of an answer, without special tokens (as the engines return it)."""
        text: str = self._tokenizer.decode(list(ids), skip_special_tokens=True, clean_up_tokenization_spaces=False)
        return text

    def refusal(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None) -> str | None:
        """Why these messages cannot be rendered, or None if they can."""
        try:
            self._text(messages, tools, opened=True)
        except RenderError as error:
            return str(error)
        return None

    def _all_eos(self, config: Any) -> frozenset[int]:
        found: set[int] = set()
        sources = [config.eos_token_id, self._tokenizer.eos_token_id]
        if (self.model_dir / "generation_config.json").is_file():
            sources.append(GenerationConfig.from_pretrained(self.model_dir).eos_token_id)
        for source in sources:
            found.update(source if isinstance(source, list) else [] if source is None else [source])
        return frozenset(found)

    def _through_end_of_turn(self, ids: list[int]) -> list[int]:
        for place, token in enumerate(ids):
            if token in self.eos_ids:
                if place == 0:
                    raise RenderError("the answer is empty: there is nothing to learn from it")
                return ids[: place + 1]
        return [*ids, int(self._tokenizer.eos_token_id)]

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _text(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None, *, opened: bool) -> str:
        shown = [_normalise(message) for message in messages]
        try:
            text: str = self._tokenizer.apply_chat_template(
                shown, tools=list(tools) if tools else None, add_generation_prompt=opened, tokenize=False
            )
        except Exception as error:  # a template may raise anything: whatever it is, the messages did not fit it
            raise RenderError(f"the chat template refuses the messages: {error}") from error
        for name in _names(shown, tools):
            if name not in text:
                raise RenderError(f"the chat template drops the tool {name!r}: this model cannot learn tool calls")
        return text


def _normalise(message: Message) -> dict[str, Any]:
    """What vLLM makes of a message before its template sees it (content format "string")."""
    shown: dict[str, Any] = {"role": message["role"], "content": _text_of(message.get("content"))}
    for key in ("name", "tool_call_id"):
        if isinstance(message.get(key), str):
            shown[key] = message[key]
    if calls := message.get("tool_calls"):
        shown["tool_calls"] = [_tool_call(call) for call in calls]
    return shown


def _text_of(content: Any) -> str:
    if content is None:
        return ""
    if isinstance(content, str):
        return content
    texts: list[str] = []
    for part in content:
        kind = "text" if isinstance(part, str) else part.get("type")
        if kind == "refusal" or kind not in {"text", "input_text", "output_text"}:
            raise RenderError(f"a message has a part of type {kind!r}: only text can be rendered")
        texts.append(part if isinstance(part, str) else part["text"])
    return "\n".join(texts)


def _tool_call(call: Mapping[str, Any]) -> dict[str, Any]:
    function = dict(call.get("function") or {})
    arguments = function.get("arguments") or {}
    if isinstance(arguments, str):
        try:
            arguments = json.loads(arguments)
        except ValueError as error:
            raise RenderError(f"the arguments of tool call {function.get('name')!r} are not JSON: {error}") from error
    return {**call, "function": {**function, "arguments": arguments}}


def _names(messages: Sequence[dict[str, Any]], tools: Sequence[Mapping[str, Any]] | None) -> list[str]:
    called = [call["function"].get("name") for message in messages for call in message.get("tool_calls", [])]
    offered = [tool.get("function", {}).get("name") for tool in tools or []]
    return [name for name in [*called, *offered] if name]
