"""Owns a model's tokenizer and chat template: prompts, examples and rollouts as tokens with their mask.

Fails closed: what the template drops, changes or adds around an answer is a RenderError, never a wrong mask. Must not
truncate, and never re-tokenises what a sampler sampled.
"""

import hashlib
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from transformers import AutoConfig, AutoTokenizer, GenerationConfig

from rl.render.shown import Message, RenderError, arguments_of, shown, shown_tools
from rl.types import TEMPLATE_ARGUMENTS, Datum, MaskError, Sample

_GENERATION = "generation_config.json"


class Renderer:
    """A model folder's tokenizer and chat template. Raises RenderError for a model that cannot be talked to."""

    def __init__(self, model_dir: Path | str) -> None:
        self.model_dir = Path(model_dir)
        self._tokenizer = AutoTokenizer.from_pretrained(self.model_dir)
        template = self._tokenizer.chat_template
        if not isinstance(template, str):
            raise RenderError(f"{self.model_dir} has no chat template: choose an instruct model")
        config = AutoConfig.from_pretrained(self.model_dir)
        self._template = template
        self._special = {token for token, added in self._tokenizer.added_tokens_decoder.items() if added.special}
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
        self._check_answer(answer, completion)
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

    def pieces(self, ids: Sequence[int]) -> list[str]:
        """What each token adds to the text, special tokens by their name; half a character as the vocabulary has it."""
        found = []
        for place, token in enumerate(ids):
            # Beside its predecessor, because tokenizers drop the space that a text's first token begins with.
            before = list(ids[max(0, place - 1) : place])
            left, both = self._raw(before), self._raw([*before, token])
            piece = both[len(left) :] if both.startswith(left) else self._raw([token])
            found.append(self._tokenizer.convert_ids_to_tokens(token) if "\ufffd" in piece else piece)
        return found

    def is_special(self, token: int) -> bool:
        """Whether it is one of the tokens that mark turns, not part of any text."""
        return token in self.eos_ids or token in self._special

    def refusal(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None = None) -> str | None:
        """Why these messages cannot be rendered, or None if they can."""
        try:
            self._text(messages, tools, opened=True)
        except RenderError as error:
            return str(error)
        return None

    def declare_ends(self, folder: Path) -> None:
        """Writes every end-of-turn token into a model folder's generation config, where engines look for them."""
        file = folder / _GENERATION
        known = json.loads(file.read_text()) if file.is_file() else {}
        file.write_text(json.dumps(known | {"eos_token_id": sorted(self.eos_ids)}, indent=2))

    def _all_eos(self, config: Any) -> frozenset[int]:
        found: set[int] = set()
        sources = [getattr(config, "eos_token_id", None), self._tokenizer.eos_token_id]
        if (self.model_dir / _GENERATION).is_file():
            sources.append(GenerationConfig.from_pretrained(self.model_dir).eos_token_id)
        for source in sources:
            found.update(source if isinstance(source, list) else [] if source is None else [source])
        return frozenset(found | self._template_end())

    def _template_end(self) -> set[int]:
        """The special token right after an answer: some folders name another as the end, and never this one."""
        try:
            text = self._text(
                [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}], None, opened=False
            )
        except RenderError:
            return set()
        after = self._encode(text.rpartition("!")[2].lstrip())
        return set(after[:1]) & self._special

    def _through_end_of_turn(self, ids: list[int]) -> list[int]:
        for place, token in enumerate(ids):
            if token in self.eos_ids:
                if place == 0:
                    raise RenderError("the answer is empty: there is nothing to learn from it")
                return ids[: place + 1]
        end = self._tokenizer.eos_token_id
        return [*ids, int(min(self.eos_ids) if end is None else end)]

    def _check_answer(self, answer: Message, completion: Sequence[int]) -> None:
        """Refuses a completion whose text, as an engine would return it, is not the answer."""
        text = self.decode(completion).strip()
        wanted = shown([answer], self._template)[0]
        content = wanted["content"].strip()
        if "tool_calls" not in wanted and text != content:
            if "think>" in text or "think>" in content:
                raise RenderError("the chat template puts thinking into the answer and cannot be told not to")
            raise RenderError(f"the chat template makes {_cut(text)} of the answer {_cut(content)}")
        if content not in text:
            raise RenderError(f"the chat template drops the text beside the tool calls: {_cut(content)}")
        for call in answer.get("tool_calls") or []:
            name, given = call["function"].get("name"), arguments_of(call["function"].get("arguments"))
            if given is None:
                raise RenderError(f"the arguments of tool call {name!r} are not a JSON object")
            lost = [value for value in _values(given) if not _appears(value, text)]
            if name not in text or lost:
                raise RenderError(f"the chat template drops {lost or name!r} of the tool call {name!r}")

    def _encode(self, text: str) -> list[int]:
        ids: list[int] = self._tokenizer.encode(text, add_special_tokens=False)
        return ids

    def _raw(self, ids: list[int]) -> str:
        text: str = self._tokenizer.decode(ids, skip_special_tokens=False, clean_up_tokenization_spaces=False)
        return text

    def _text(self, messages: Sequence[Message], tools: Sequence[Mapping[str, Any]] | None, *, opened: bool) -> str:
        conversation, offered = shown(messages, self._template), shown_tools(tools)
        text = self._applied(conversation, offered, opened)
        names = _names(conversation, offered)
        # A name may stand in the text for another reason: what makes no difference is dropped, too.
        lost = next((name for name in names if name not in text), None)
        if offered and lost is None and text == self._applied(conversation, None, opened):
            lost = names[-1]
        if lost is not None:
            raise RenderError(f"the chat template drops the tool {lost!r}: this model cannot learn tool calls")
        return text

    def _applied(self, conversation: list[dict[str, Any]], tools: list[dict[str, Any]] | None, opened: bool) -> str:
        try:
            text: str = self._tokenizer.apply_chat_template(
                conversation, tools=tools, add_generation_prompt=opened, tokenize=False, **TEMPLATE_ARGUMENTS
            )
        except Exception as error:  # a template may raise anything: whatever it is, the messages did not fit it
            raise RenderError(f"the chat template refuses the messages: {error}") from error
        return text


def _names(messages: Sequence[dict[str, Any]], tools: Sequence[dict[str, Any]] | None) -> list[str]:
    called = [call["function"].get("name") for message in messages for call in message.get("tool_calls", [])]
    offered = [tool["function"]["name"] for tool in tools or []]
    return [name for name in [*called, *offered] if name]


def _values(given: object) -> list[object]:
    """Everything at the leaves of a JSON value."""
    if isinstance(given, dict):
        return [leaf for value in given.values() for leaf in _values(value)]
    if isinstance(given, list):
        return [leaf for value in given for leaf in _values(value)]
    return [given]


def _appears(value: object, text: str) -> bool:
    forms = {str(value), json.dumps(value, ensure_ascii=False).strip('"'), json.dumps(value).strip('"')}
    return any(form in text for form in forms)


def _cut(text: str, most: int = 80) -> str:
    return repr(text if len(text) <= most else text[: most - 1] + "…")
