"""Chat templates written for the tests, each in the manner of a family of models, and a folder that holds one."""

from pathlib import Path

from transformers import LlamaConfig

from tests.rl.conftest import tiny_tokenizer

MARKS = ["<s>", "</s>", "[INST]", "[/INST]", "<|im_start|>", "<|im_end|>", "<|header|>", "<|body|>", "<|eot|>"]

CHATML = """
{%- if messages[0].role == 'system' %}{% set ruling = messages[0].content %}{% set rest = messages[1:] %}
{%- else %}{% set ruling = DEFAULT %}{% set rest = messages %}{% endif -%}
<|im_start|>system
{{ ruling }}{% if tools %}

Functions at hand:
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}{% endif %}<|im_end|>
{% for m in rest %}<|im_start|>{{ 'user' if m.role == 'tool' else m.role }}
{% if m.role == 'tool' %}<result>{{ m.content }}</result>{% else %}{{ m.content }}{% endif %}
{%- for call in m.tool_calls or [] %}
<call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</call>
{%- endfor %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% endif %}"""

SMOL = CHATML.replace("{% if tools %}", "{% if false %}").replace("m.tool_calls or []", "[]")

LLAMA = """{{ bos_token }}
{%- if tools %}<|header|>system<|body|>

You may call:
{% for tool in tools %}{{ tool.function | tojson(indent=2) }}
{% endfor %}<|eot|>{% endif %}
{%- for m in messages %}{% if m.tool_calls and m.tool_calls | length > 1 %}
{{- raise_exception('one call at a time') }}{% endif -%}
<|header|>{{ 'ipython' if m.role == 'tool' else m.role }}<|body|>

{% if m.tool_calls %}{"name": "{{ m.tool_calls[0].function.name }}", "parameters":
{{- m.tool_calls[0].function.arguments | tojson }}}{% else %}{{ m.content | trim }}{% endif %}<|eot|>
{%- endfor %}{% if add_generation_prompt %}<|header|>assistant<|body|>

{% endif %}"""

MISTRAL = """{{ bos_token }}
{%- if messages[0].role == 'system' %}{% set ruling = messages[0].content + '\n\n' %}{% set rest = messages[1:] %}
{%- else %}{% set ruling = '' %}{% set rest = messages %}{% endif -%}
{%- for m in rest %}{% if (m.role == 'user') != (loop.index0 % 2 == 0) %}
{{- raise_exception('user and assistant take turns here') }}{% endif -%}
{% if m.role == 'user' %}[INST] {% if loop.first %}{{ ruling }}{% endif %}{{ m.content }}[/INST]
{%- else %} {{ m.content }}</s>{% endif %}{% endfor %}"""

QWEN3 = """
{%- set last = namespace(ask=-1) %}
{%- for m in messages %}{% if m.role == 'user' %}{% set last.ask = loop.index0 %}{% endif %}{% endfor -%}
{%- if tools %}<|im_start|>system
{% for tool in tools %}{{ tool | tojson }}
{% endfor %}<|im_end|>
{% endif %}
{%- for m in messages %}<|im_start|>{{ m.role }}
{% if m.role == 'assistant' %}
{%- set said = m.content.split('</think>')[-1].lstrip('\n') %}
{%- set thought = m.content.split('</think>')[0].split('<think>')[-1].strip('\n') if '</think>' in m.content else '' %}
{%- if loop.index0 > last.ask and (loop.last or thought) %}<think>
{{ thought }}
</think>

{% endif %}{{ said }}
{%- for call in m.tool_calls or [] %}
<call>{"name": "{{ call.function.name }}", "arguments": {{ call.function.arguments | tojson }}}</call>
{%- endfor %}
{%- else %}{{ m.content }}{% endif %}<|im_end|>
{% endfor %}{% if add_generation_prompt %}<|im_start|>assistant
{% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}{% endif %}"""

FAMILIES = {
    "chatml": CHATML.replace("DEFAULT", "'You are helpful.'"),
    "smol": SMOL.replace("DEFAULT", "'You are a small model.'"),
    "llama": LLAMA,
    "mistral": MISTRAL,
    "qwen3": QWEN3,
    "developer": "{% for m in messages %}{% if m.role == 'developer' %}RULE {% endif %}"
    "{{ m | tojson }}<|eot|>{% endfor %}",
    "everything": "{{ tools | tojson }}{% for m in messages %}{{ m | tojson }}<|eot|>{% endfor %}",
}
"""`everything` prints all that a template is shown, in its order; `developer` is one that knows that role."""

ALWAYS_THINKS = QWEN3.replace(
    "{% if enable_thinking is defined and not enable_thinking %}<think>\n\n</think>\n\n{% endif %}", "<think>\n"
)


def model_folder(folder: Path, template: str, *, eos: str = "<|im_end|>") -> Path:
    """A model's folder without weights: all that a renderer reads."""
    tokenizer = tiny_tokenizer(MARKS)
    tokenizer.bos_token, tokenizer.eos_token, tokenizer.chat_template = "<s>", eos, template
    tokenizer.save_pretrained(folder)
    LlamaConfig(
        vocab_size=len(tokenizer), hidden_size=32, intermediate_size=64, num_hidden_layers=1, num_attention_heads=4,
        num_key_value_heads=2, max_position_embeddings=4096, bos_token_id=None, architectures=["LlamaForCausalLM"],
        eos_token_id=tokenizer.convert_tokens_to_ids(eos), dtype="float32",
    ).save_pretrained(folder)  # fmt: skip
    return folder
