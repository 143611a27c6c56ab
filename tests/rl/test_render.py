"""The renderer: what the template sees, where training begins and ends, and what it refuses."""

import json
from pathlib import Path

import pytest
from transformers import AutoTokenizer

from rl.render import Renderer, RenderError
from rl.types import MaskError, Sample

ASK = [{"role": "system", "content": "Sort."}, {"role": "user", "content": "héllo"}]
TOOLS_TEMPLATE = (
    "{% if tools %}<|system|>{{ tools | tojson }}<|end|>{% endif %}"
    "{% for m in messages %}<|{{ m['role'] }}|>{{ m['content'] }}"
    "{% for call in m.get('tool_calls', []) %}CALL {{ call.function.name }}"
    "({% for k, v in call.function.arguments.items() %}{{ k }}={{ v }}{% endfor %}){% endfor %}<|end|>{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {}}}


@pytest.fixture(scope="module")
def renderer(tiny_dir: Path) -> Renderer:
    return Renderer(tiny_dir)


def test_prompt_opens_the_assistants_turn(renderer: Renderer, tiny_dir: Path) -> None:
    raw = AutoTokenizer.from_pretrained(tiny_dir).decode(renderer.prompt(ASK))
    assert raw == "<|system|>Sort.<|end|><|user|>héllo<|end|><|assistant|>"


def test_null_and_array_content_look_as_in_the_engine(renderer: Renderer) -> None:
    parts = [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]
    assert renderer.prompt([{"role": "user", "content": parts}]) == renderer.prompt(
        [{"role": "user", "content": "a\nb"}]
    )
    assert renderer.prompt([{"role": "user", "content": None}]) == renderer.prompt([{"role": "user", "content": ""}])


def test_only_the_answer_and_its_end_are_trained(renderer: Renderer) -> None:
    datum = renderer.example(ASK, '{"a":1}')
    prompt = renderer.prompt(ASK)
    assert list(datum.tokens[: len(prompt)]) == prompt
    assert list(datum.weights) == [0.0] * len(prompt) + [1.0] * (len(datum.tokens) - len(prompt))
    answer = datum.tokens[len(prompt) :]
    assert renderer.decode(answer) == '{"a":1}'
    assert answer[-1] in renderer.eos_ids


def test_every_end_of_turn_is_known(renderer: Renderer, tiny_dir: Path) -> None:
    tokenizer = AutoTokenizer.from_pretrained(tiny_dir)
    assert renderer.eos_ids == {tokenizer.convert_tokens_to_ids(name) for name in ("<|end|>", "<|stop|>")}


def test_rollouts_keep_the_samplers_tokens(renderer: Renderer) -> None:
    sample = Sample((5, 6, 7), (-0.1, -0.2, -0.3), "stop", 4)
    datum = renderer.rollout([1, 2], sample, advantage=0.5, group=3)
    assert list(datum.tokens) == [1, 2, 5, 6, 7]
    assert list(datum.weights) == [0, 0, 1, 1, 1]
    assert list(datum.sampler_logprobs or []) == [0, 0, -0.1, -0.2, -0.3]
    with pytest.raises(MaskError):
        renderer.rollout([1, 2], Sample((5, 6), (-0.1,), "stop", 0), 0.0)


def test_empty_answers_and_images_are_refused(renderer: Renderer) -> None:
    with pytest.raises(RenderError, match="empty"):
        renderer.example(ASK, "")
    image = [{"role": "user", "content": [{"type": "image_url", "image_url": {"url": "x"}}]}]
    with pytest.raises(RenderError, match="image_url"):
        renderer.prompt(image)
    assert "image_url" in str(renderer.refusal(image))
    assert renderer.refusal(ASK) is None


def test_tools_are_refused_where_the_template_drops_them(renderer: Renderer) -> None:
    with pytest.raises(RenderError, match="look_up"):
        renderer.prompt(ASK, tools=[TOOL])
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": '{"k": 1}'}}
    with pytest.raises(RenderError, match="look_up"):
        renderer.example(ASK, {"role": "assistant", "content": None, "tool_calls": [call]})


def test_tools_are_rendered_where_the_template_has_them(tiny_dir: Path, tmp_path: Path) -> None:
    for file in tiny_dir.iterdir():
        (tmp_path / file.name).write_bytes(file.read_bytes())
    (tmp_path / "chat_template.jinja").write_text(TOOLS_TEMPLATE)
    renderer = Renderer(tmp_path)
    call = {"id": "1", "type": "function", "function": {"name": "look_up", "arguments": json.dumps({"k": 1})}}
    datum = renderer.example(ASK, {"role": "assistant", "content": None, "tool_calls": [call]}, tools=[TOOL])
    assert renderer.decode(datum.tokens).endswith("CALL look_up(k=1)")
    bad = {**call, "function": {"name": "look_up", "arguments": "{"}}
    with pytest.raises(RenderError, match="not a JSON object"):
        renderer.example(ASK, {"role": "assistant", "content": None, "tool_calls": [bad]}, tools=[TOOL])
    # In an earlier turn they are what the engine makes of them, which lets the conversation go on.
    turn = {"role": "assistant", "content": None, "tool_calls": [bad]}
    assert renderer.decode(renderer.prompt([*ASK, turn])).endswith("CALL look_up()")
