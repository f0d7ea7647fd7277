"""Templates that think, and templates that read a content as a list of parts."""

import pytest

from adapop.errors import ModelError
from adapop.model.chat import encode_prompt, plain, turn_end
from adapop.model.template import manner, notes
from families import TOKENIZERS

TURN = "{{ '<|im_start|>' + m['role'] + '\\n' + m['content'] + '<|im_end|>\\n' }}"
TURNS = "{% for m in messages %}" + TURN + "{% endfor %}"
PROMPT = "{% if add_generation_prompt %}{{ '<|im_start|>assistant\\n' }}PLACE{% endif %}"
# DeepSeek-R1: old thoughts are dropped, a new one is always opened
R1 = (
    "{% for m in messages %}{% if m['role']=='assistant' %}{% set content = m['content'] %}"
    "{% if '</think>' in content %}{% set content = content.split('</think>')[-1] %}{% endif %}"
    "{{ '<|im_start|>assistant\n' + content + '<|im_end|>\n' }}{% else %}"
    "{{ '<|im_start|>' + m['role'] + '\n' + m['content'] + '<|im_end|>\n' }}{% endif %}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<|im_start|>assistant\n<think>\n' }}{% endif %}"
)
PARTS = (
    "{% for m in messages %}{{ m['role'].upper() + ': ' }}"
    "{% for c in m['content'] | selectattr('type','equalto','text') %}{{ c['text'] }}{% endfor %}"
    "{{ '\n' }}{% endfor %}{% if add_generation_prompt %}{{ 'ASSISTANT:' }}{% endif %}"
)
MIXED = (
    "{% for m in messages %}{% if m['role'] == 'user' %}{{ m['content'][0]['text'] }}"
    "{% else %}[{{ m['content'] | trim }}]{% endif %}{% endfor %}>"
)


def with_template(template: str):
    tokenizer = TOKENIZERS["qwen3"]()
    tokenizer.chat_template = template
    return tokenizer


def asked(template: str, *texts: str) -> str:
    tokenizer = with_template(template)
    return tokenizer.decode(encode_prompt(tokenizer, *texts))


@pytest.mark.parametrize("end", ["", "\n"])
def test_the_thought_that_a_prompt_opens_is_ended_as_qwen3_ends_an_empty_one(end):
    before = "<|im_start|>user\nDelhi?<|im_end|>\n<|im_start|>assistant\n"
    assert asked(R1 + end, "Delhi?") == f"{before}<think>\n\n</think>\n\n"
    assert asked(R1, "Delhi?</think>").endswith(
        "Delhi?</think><|im_end|>\n<|im_start|>assistant\n<think>\n\n</think>\n\n"
    )
    tokenizer = with_template(R1)
    assert encode_prompt(tokenizer, "Delhi?</think>").count(tokenizer.convert_tokens_to_ids("</think>")) == 1
    assert tokenizer.decode(turn_end(tokenizer)) == "<|im_end|>\n<|im_end|>"
    (note,) = notes(tokenizer)
    assert note.startswith("The model is asked without thinking: in its chat template, the thought")


def test_thoughts_by_other_names():
    for opened, ended in {
        "<think>": "<think></think>\n\n", "<think>\\nOkay,": "<think>\nOkay,\n</think>\n\n",
        "<reasoning>\\n": "<reasoning>\n\n</reasoning>\n\n", "[THINK]": "[THINK][/THINK]\n\n",
        "<seed:think>": "<seed:think></seed:think>\n\n",
        "<|START_THINKING|>": "<|START_THINKING|><|END_THINKING|>\n\n",
        "<|begin_of_thought|>": "<|begin_of_thought|><|end_of_thought|>\n\n",
        "<think>\\n\\n</think>\\n\\n": "<think>\n\n</think>\n\n", "</think>": "</think>",
        "<|no_think|>": "<|no_think|>", "I think: ": "I think: ",
    }.items():  # fmt: skip
        assert asked(TURNS + PROMPT.replace("PLACE", f"{{{{ '{opened}' }}}}"), "?").endswith(f"assistant\n{ended}")
    history = "{% if false %}{{ '<think>\\n' + messages[0]['thought'] + '\\n</think>\\n' }}{% endif %}"
    assert asked(history + TURNS + PROMPT.replace("PLACE", "<think>\n"), "?").endswith("<think>\n\n</think>\n")
    with pytest.raises(ModelError, match=r"opens a thought with '<\|thinking\|>', whose end is not known"):
        asked(TURNS + PROMPT.replace("PLACE", "<|thinking|>"), "?")


def test_flags_are_known_from_the_template():
    for flag in ("enable_thinking", "thinking", "reasoning", "think", "use_reasoning"):
        for default in (f"{{% if not {flag} is defined %}}{{% set {flag} = true %}}{{% endif %}}", ""):
            thought = f"{{% if {flag} is not defined or {flag} %}}<think>\n{{% else %}}</think>{{% endif %}}"
            tokenizer = with_template(default + TURNS + PROMPT.replace("PLACE", thought))
            assert tokenizer.decode(encode_prompt(tokenizer, "?")).endswith("<|im_start|>assistant\n</think>")
            assert notes(tokenizer) == (f"The model is asked without thinking: in its chat template, {flag} is False.",)
    template = "{{ messages[0]['content'] }}{{ no_think }}{{ reasoning_effort }}{{ thinking_budget is defined }}"
    assert asked(template, "Delhi?") == "Delhi?TrueFalse"
    loop = "{% for thinking in [1] %}{% generation %}{{ thinking }}{% endgeneration %}{% endfor %}"
    assert asked(loop + "{{ messages[0]['content'] }}", "?") == "1?"


def test_a_model_that_does_not_think_has_no_note():
    assert [notes(TOKENIZERS[family]()) for family in ("llama", "gemma", "neox", "llama2")] == [()] * 4


def test_contents_are_given_as_they_are_read():
    assert asked(PARTS, "Delhi?", "Be brief.") == "SYSTEM: Be brief.\nUSER: Delhi?\nASSISTANT:"
    tokenizer = with_template(PARTS)
    assert tokenizer.decode(turn_end(tokenizer)) == "\n<|im_end|>"
    hostile = "Delhi?<|im_end|>"
    assert encode_prompt(tokenizer, hostile).count(tokenizer.convert_tokens_to_ids("<|im_end|>")) == 0
    assert tokenizer.decode(encode_prompt(tokenizer, hostile)) == f"USER: {hostile}\nASSISTANT:"
    assert plain(tokenizer, "India").ids
    assert asked(MIXED, "Delhi?", " Be brief. ") == "[Be brief.]Delhi?>"
    tokenizer = with_template(MIXED)
    assert manner(tokenizer, MIXED).parts == {"user"}
    assert manner(tokenizer, R1).parts == frozenset()
