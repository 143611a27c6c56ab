"""The renderer over templates of several families: where the answer begins and ends, and what is refused."""

from pathlib import Path

import pytest

from rl.render import Renderer, RenderError
from rl.types import Datum
from tests.rl.templates import ALWAYS_THINKS, FAMILIES, model_folder

ASK = [{"role": "system", "content": "Sort."}, {"role": "user", "content": "héllo 😀"}]
TOOL = {"type": "function", "function": {"name": "look_up", "parameters": {"type": "object"}}}
CALL = {"id": "c1", "type": "function", "function": {"name": "look_up", "arguments": '{"city": "Zürich", "n": 2}'}}
ENDS = {"chatml": "<|im_end|>", "smol": "<|im_end|>", "llama": "<|eot|>", "mistral": "</s>", "qwen3": "<|im_end|>"}


def renderer_of(folder: Path, template: str, eos: str = "<|im_end|>") -> Renderer:
    return Renderer(model_folder(folder, template, eos=eos))


def trained(renderer: Renderer, datum: Datum) -> str:
    ids = [token for token, weight in zip(datum.tokens, datum.weights, strict=True) if weight]
    return "".join(renderer.pieces(ids))


@pytest.mark.parametrize("family", ENDS)
def test_the_answer_alone_is_trained_with_the_end_of_its_turn(family: str, tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES[family], ENDS[family])
    datum = renderer.example(ASK, '{"a": "e"}')
    prompt = renderer.prompt(ASK)
    assert list(datum.tokens[: len(prompt)]) == prompt
    assert not any(datum.weights[: len(prompt)])
    assert trained(renderer, datum).strip() == f'{{"a": "e"}}{ENDS[family]}'


@pytest.mark.parametrize("family", ["llama", "chatml", "mistral"])
def test_an_end_that_no_folder_names_is_learned_from_the_template(family: str, tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES[family], eos="<|stop|>")
    datum = renderer.example(ASK, "yes")
    assert trained(renderer, datum).strip() == f"yes{ENDS[family]}"
    assert len(renderer.eos_ids) == 2
    renderer.declare_ends(tmp_path)
    assert Renderer(tmp_path).eos_ids == renderer.eos_ids


@pytest.mark.parametrize("family", ["chatml", "llama", "qwen3"])
def test_tool_calls_and_their_results(family: str, tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES[family], ENDS[family])
    turn = {"role": "assistant", "content": None, "tool_calls": [CALL]}
    datum = renderer.example(ASK, turn, tools=[TOOL])
    assert '"name": "look_up"' in trained(renderer, datum)
    assert "ZÃ¼rich" in trained(renderer, datum), "half characters have their vocabulary's names"
    later = [*ASK, turn, {"role": "tool", "tool_call_id": "c1", "content": "12"}]
    answer = renderer.example(later, "It is 12.", tools=[TOOL])
    assert trained(renderer, answer).strip() == f"It is 12.{ENDS[family]}"
    assert "12" in "".join(renderer.pieces(renderer.prompt(later, [TOOL])))


@pytest.mark.parametrize("family", ["smol", "mistral"])
def test_a_template_without_tools_says_so(family: str, tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES[family], ENDS[family])
    assert "drops the tool 'look_up'" in str(renderer.refusal(ASK, [TOOL]))
    assert renderer.refusal(ASK) is None
    named = [ASK[0], {"role": "user", "content": "please look_up this"}]
    assert "drops the tool 'look_up'" in str(renderer.refusal(named, [TOOL])), "its name is there for another reason"


def test_a_template_may_refuse_the_turns(tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES["mistral"], "</s>")
    assert "take turns here" in str(renderer.refusal([*ASK, ASK[1]]))


def test_thinking_is_closed_before_the_answer_and_gone_from_earlier_turns(tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES["qwen3"])
    said = {"role": "assistant", "content": "<think>\nhm\n</think>\n\none"}
    datum = renderer.example([*ASK, said, {"role": "user", "content": "more"}], "two")
    assert trained(renderer, datum) == "two<|im_end|>"
    text = "".join(renderer.pieces(datum.tokens))
    assert "hm" not in text
    assert text.endswith("<think>\n\n</think>\n\ntwo<|im_end|>")
    with pytest.raises(RenderError, match=r"changes earlier turns|thinking"):
        renderer.example(ASK, "<think>\nhm\n</think>\n\none")


def test_a_template_that_always_thinks_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="cannot be told not to"):
        renderer_of(tmp_path, ALWAYS_THINKS).example(ASK, "one")


@pytest.mark.parametrize(
    ("template", "why"),
    [
        ("{% for m in messages %}{{ m.role }}{% if m.role != 'assistant' %}{{ m.content }}{% endif %}<|eot|>"
         "{% endfor %}{% if add_generation_prompt %}assistant{% endif %}", "makes '' of the answer"),
        ("{% for m in messages %}{{ m.role }} {{ m.content | upper }}<|eot|>{% endfor %}"
         "{% if add_generation_prompt %}assistant {% endif %}", "makes 'YES' of the answer 'yes'"),
        ("{{ messages | length }}{% for m in messages %}{{ m.content }}<|eot|>{% endfor %}", "changes earlier turns"),
        ("{% for m in messages %}{{ m.role }}{% if not loop.last or m.role != 'assistant' %} {{ m.content }}<|eot|>"
         "{% endif %}{% endfor %}{% if add_generation_prompt %}assistant{% endif %}", "makes '' of the answer 'yes'"),
    ],
)  # fmt: skip
def test_what_a_template_does_to_the_answer_is_noticed(template: str, why: str, tmp_path: Path) -> None:
    with pytest.raises(RenderError, match=why):
        renderer_of(tmp_path, template).example(ASK, "yes")


def test_an_answer_that_writes_an_end_of_turn_is_refused(tmp_path: Path) -> None:
    with pytest.raises(RenderError, match="of the answer"):
        renderer_of(tmp_path, FAMILIES["chatml"]).example(ASK, "yes<|im_end|>no")


def test_pieces_put_together_are_the_text(tmp_path: Path) -> None:
    renderer = renderer_of(tmp_path, FAMILIES["llama"], "<|eot|>")
    ids = renderer.prompt([{"role": "user", "content": " a  b\n"}])
    assert "".join(renderer.pieces(ids)) == "<s><|header|>user<|body|>\n\na  b<|eot|><|header|>assistant<|body|>\n\n"
    assert [renderer.is_special(token) for token in ids[:3]] == [True, True, False]
    # Tokens that are half a character have a name of their own, never a replacement character.
    assert "\ufffd" not in "".join(renderer.pieces(renderer.prompt([{"role": "user", "content": "é"}])))
