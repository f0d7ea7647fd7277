"""Small random models of four families, each in a folder as the Hub has them: safetensors, tokenizer, chat template.

The tokenizers are trained here on a few lines and built like the real ones: byte-level BPE (Llama 3, Qwen, GPT-NeoX),
BPE on characters with a byte for what is unknown (Gemma); two more, without a model, for what else there is.
"""

import json
from collections.abc import Callable
from pathlib import Path

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers, processors, trainers
from transformers import (
    AutoConfig,
    AutoModelForCausalLM,
    AutoModelForImageTextToText,
    PreTrainedModel,
    PreTrainedTokenizerFast,
)

LINES = [
    "What is the country of Delhi? India", "What is the country of Perth? Australia", "Who wrote Emma? Jane Austen",
    "What is the capital of France? Paris", "You state facts.  Answer in a few correct words.\n\nuser assistant system",
] * 4  # fmt: skip
WORDS = r"(?i:'s|'t)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+"
BYTES = [f"<0x{byte:02X}>" for byte in range(256)]
LLAMA = (
    "{{- bos_token }}{%- if not date_string is defined %}{%- if strftime_now is defined %}"
    "{%- set date_string = strftime_now('%d %b %Y') %}{%- endif %}{%- endif %}"
    "{{- '<|start_header_id|>system<|end_header_id|>\n\nToday Date: ' + date_string + '\n\n' }}"
    "{%- if messages[0]['role'] == 'system' %}{{- messages[0]['content']|trim }}{%- set messages = messages[1:] %}"
    "{%- endif %}{{- '<|eot_id|>' }}{%- for message in messages %}{{- '<|start_header_id|>' + message['role'] + "
    "'<|end_header_id|>\n\n' + message['content'] | trim + '<|eot_id|>' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|start_header_id|>assistant<|end_header_id|>\n\n' }}{%- endif %}"
)
QWEN = (
    "{%- if tools %}{{- '<tool_call>' }}{%- endif %}{%- if messages[0]['role'] != 'system' %}"
    "{{- '<|im_start|>system\nYou are a model.<|im_end|>\n' }}{%- endif %}{%- for message in messages %}"
    "{{- '<|im_start|>' + message.role + '\n' + message.content + '<|im_end|>' + '\n' }}{%- endfor %}"
    "{%- if add_generation_prompt %}{{- '<|im_start|>assistant\n' }}{%- endif %}"
)
QWEN3 = QWEN + (
    "{%- if add_generation_prompt and enable_thinking is defined and enable_thinking is false %}"
    "{{- '<think>\n\n</think>\n\n' }}{%- endif %}"
)
GEMMA = (
    "{{ bos_token }}{% if messages[0]['role'] == 'system' %}{{ raise_exception('System role not supported') }}"
    "{% endif %}{% for message in messages %}{% set role = 'model' if message['role'] == 'assistant' else 'user' %}"
    "{{ '<start_of_turn>' + role + '\n' + message['content'] | trim + '<end_of_turn>\n' }}{% endfor %}"
    "{% if add_generation_prompt %}{{ '<start_of_turn>model\n' }}{% endif %}"
)
PLAIN = "Question: {{ messages[0]['content'] }}\nAnswer:"
INST = (
    "{{ bos_token }}{% for message in messages %}{% if message['role'] == 'assistant' %}"
    "{{ ' ' + message['content'] + eos_token }}{% else %}{{ '[INST] ' + message['content'] + ' [/INST]' }}{% endif %}"
    "{% endfor %}"
)


def byte_level(template: str, special: list[str], written: tuple[str, ...] = (), **roles) -> PreTrainedTokenizerFast:
    """Llama 3's, Qwen's and GPT-NeoX's kind. written: added tokens that are not special."""
    tokenizer = Tokenizer(models.BPE())
    words = pre_tokenizers.Split(Regex(WORDS), behavior="isolated")
    letters = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([words, letters])
    tokenizer.decoder = decoders.ByteLevel()
    alphabet = pre_tokenizers.ByteLevel.alphabet()
    trainer = trainers.BpeTrainer(vocab_size=400, initial_alphabet=alphabet, show_progress=False)
    tokenizer.train_from_iterator(LINES, trainer)
    return _finished(tokenizer, template, special, written, roles)


def characters(template: str, special: list[str], written: tuple[str, ...] = (), **roles) -> PreTrainedTokenizerFast:
    """Gemma's kind: spaces are letters, what is unknown becomes bytes, control tokens are in the vocabulary as well."""
    tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
    tokenizer.normalizer = normalizers.Replace(" ", "▁")
    tokenizer.decoder = decoders.Sequence([decoders.Replace("▁", " "), decoders.ByteFallback(), decoders.Fuse()])
    first = [*special, "<unk>", *BYTES]
    tokenizer.train_from_iterator(LINES, trainers.BpeTrainer(vocab_size=500, special_tokens=first, show_progress=False))
    tokenizer = _without_special_bytes(tokenizer)
    return _finished(tokenizer, template, [*special, "<unk>"], written, {"unk_token": "<unk>", **roles})


def with_prefix(template: str, special: list[str], unigram: bool = False, **roles) -> PreTrainedTokenizerFast:
    """Llama 2's kind, where a text begins with a space that nobody wrote; or the same on Unigram."""
    first = [*special, "<unk>"]
    if unigram:
        tokenizer = Tokenizer(models.Unigram())
        trainer = trainers.UnigramTrainer(vocab_size=90, special_tokens=first, unk_token="<unk>", show_progress=False)
    else:
        tokenizer = Tokenizer(models.BPE(byte_fallback=True, unk_token="<unk>", fuse_unk=True))
        trainer = trainers.BpeTrainer(vocab_size=500, special_tokens=[*first, *BYTES], show_progress=False)
    tokenizer.pre_tokenizer = pre_tokenizers.Metaspace(prepend_scheme="first", split=unigram)
    space, first_space = decoders.Replace("▁", " "), decoders.Strip(" ", 1, 0)
    tokenizer.decoder = decoders.Sequence([space, decoders.ByteFallback(), decoders.Fuse(), first_space])
    tokenizer.train_from_iterator(LINES, trainer)
    tokenizer = tokenizer if unigram else _without_special_bytes(tokenizer)
    return _finished(tokenizer, template, first, (), {"unk_token": "<unk>", **roles})


def _without_special_bytes(tokenizer: Tokenizer) -> Tokenizer:
    """The bytes stay in the vocabulary, where falling back to them works, but are no added tokens."""
    state = json.loads(tokenizer.to_str())
    state["added_tokens"] = [token for token in state["added_tokens"] if token["content"] not in BYTES]
    return Tokenizer.from_str(json.dumps(state))


def _finished(tokenizer, template, special, written, roles) -> PreTrainedTokenizerFast:
    tokenizer.add_special_tokens([AddedToken(token, special=True, normalized=False) for token in special])
    tokenizer.add_tokens([AddedToken(token, special=False, normalized=False) for token in written])
    if bos := roles.get("bos_token"):  # as the real ones: a BOS in front wherever special tokens may be added
        number = tokenizer.token_to_id(bos)
        tokenizer.post_processor = processors.TemplateProcessing(single=f"{bos} $A", special_tokens=[(bos, number)])
    return PreTrainedTokenizerFast(tokenizer_object=tokenizer, chat_template=template, **roles)


TURNS = ["<|begin_of_text|>", "<|end_of_text|>", "<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"]
TOKENIZERS: dict[str, Callable[[], PreTrainedTokenizerFast]] = {
    "llama": lambda: byte_level(LLAMA, TURNS, bos_token="<|begin_of_text|>", eos_token="<|eot_id|>"),
    "qwen2": lambda: byte_level(
        QWEN, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ("<tool_call>",), eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    ),
    "qwen3": lambda: byte_level(
        QWEN3, ["<|endoftext|>", "<|im_start|>", "<|im_end|>"], ("<think>", "</think>"), eos_token="<|im_end|>",
        pad_token="<|endoftext|>",
    ),
    "gemma": lambda: characters(
        GEMMA, ["<pad>", "<eos>", "<bos>", "<start_of_turn>", "<end_of_turn>"], ("\n\n",), bos_token="<bos>",
        eos_token="<eos>", pad_token="<pad>",
    ),
    **dict.fromkeys(("neox", "gpt2"), lambda: byte_level(PLAIN, ["<|endoftext|>"], eos_token="<|endoftext|>")),
    "llama2": lambda: with_prefix(INST, ["<s>", "</s>"], bos_token="<s>", eos_token="</s>"),
    "unigram": lambda: with_prefix(INST, ["<s>", "</s>"], unigram=True, bos_token="<s>", eos_token="</s>"),
}  # fmt: skip
SHAPE = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=4)
GROUPED = dict(num_key_value_heads=2, head_dim=8, tie_word_embeddings=True)
NETWORKS = dict.fromkeys(("llama", "qwen2", "gemma"), GROUPED)
NETWORKS |= {"neox": {"model_type": "gpt_neox"}, "gpt2": {"intermediate_size": None}}

NARROW = dict(vocab_size=96, **SHAPE, max_position_embeddings=64, pad_token_id=0, bos_token_id=1, eos_token_id=2)
FEW_KEYS = dict(num_key_value_heads=2)
CAPPED = dict(head_dim=8, attn_logit_softcapping=0.5, final_logit_softcapping=0.4, query_pre_attn_scalar=8)
WINDOWS = dict(sliding_window=5, layer_types=["sliding_attention", "full_attention"])
# what each architecture has that others do not; rows of the tests are longer than the windows
ARCHITECTURES = {
    "llama": FEW_KEYS,
    "qwen2": FEW_KEYS,
    "qwen3": dict(**FEW_KEYS, head_dim=8),
    "qwen3_moe": dict(**FEW_KEYS, head_dim=8, num_experts=4, num_experts_per_tok=2, moe_intermediate_size=16),
    "mistral": dict(**FEW_KEYS, sliding_window=5),
    "gemma2": dict(**FEW_KEYS, **CAPPED, **WINDOWS),
    "gemma3_text": dict(**FEW_KEYS, head_dim=8, query_pre_attn_scalar=8, **WINDOWS),
    "cohere2": dict(**FEW_KEYS, **WINDOWS, logit_scale=1.0),
    "gpt2": dict(n_embd=32, n_layer=2, n_head=4, n_positions=64),
    "gpt_neox": {},
    "phi": FEW_KEYS,
    "phi3": FEW_KEYS,
    "olmo2": FEW_KEYS,
    "opt": dict(ffn_dim=48, word_embed_proj_dim=32, dropout=0.3, attention_dropout=0.3),
    "falcon": dict(new_decoder_architecture=False, alibi=False),
    "falcon with alibi": dict(model_type="falcon", new_decoder_architecture=False, alibi=True),
    "bloom": dict(n_head=4, n_layer=2),
    "mamba": dict(state_size=4),
    "lfm2": dict(**FEW_KEYS, layer_types=["conv", "full_attention"], block_auto_adjust_ff_dim=False),
    "qwen3_next": dict(
        **FEW_KEYS, head_dim=8, layer_types=["linear_attention", "full_attention"], num_experts=4,
        linear_key_head_dim=8, linear_value_head_dim=8,
        linear_num_key_heads=2, linear_num_value_heads=4, num_experts_per_tok=2,
        moe_intermediate_size=16, shared_expert_intermediate_size=16,
    ),
}  # fmt: skip
WIDE = dict(vocab_size=512, max_position_embeddings=512, num_hidden_layers=4)
TEXT = {**NARROW, **FEW_KEYS, **WIDE, "head_dim": 8}
VISION = dict(hidden_size=32, intermediate_size=48, num_hidden_layers=2, num_attention_heads=2)
# networks of four blocks that Llama's tokenizer fits; what differs from ARCHITECTURES, or all of one that also sees
KINDS = {
    "gemma3": dict(text_config=TEXT, vision_config=VISION | dict(image_size=28, patch_size=14), mm_tokens_per_image=4),
    "qwen2_5_vl": dict(
        text_config=TEXT | {"rope_scaling": {"type": "mrope", "mrope_section": [1, 1, 2]}},
        vision_config=dict(depth=2, hidden_size=32, intermediate_size=48, num_heads=2, out_hidden_size=32),
    ),
    "gpt2": dict(n_layer=4, n_positions=512), "qwen3_next": dict(layer_types=None),
    "deepseek_v3": dict(
        **FEW_KEYS, head_dim=8, q_lora_rank=16, kv_lora_rank=16, qk_rope_head_dim=8, qk_nope_head_dim=8, v_head_dim=8,
        n_routed_experts=4, n_group=1, topk_group=1, num_experts_per_tok=2, moe_intermediate_size=16,
        first_k_dense_replace=1,
    ),
    "mamba": {}, "opt": {}, "phi": {}, "phi3": {}, "qwen3": {},
}  # fmt: skip


def random_model(kind: str) -> PreTrainedModel:
    """A random model of one of `KINDS`."""
    torch.manual_seed(0)
    own = KINDS[kind]
    shape = own if "text_config" in own else {**NARROW, **ARCHITECTURES.get(kind, {}), **WIDE, **own}
    auto = AutoModelForImageTextToText if "text_config" in own else AutoModelForCausalLM
    return auto.from_config(AutoConfig.for_model(kind, **shape))


def saved_kind(kind: str, folder: Path) -> Path:
    """A random model of one of `KINDS` with Llama's tokenizer, in a folder as `--model` takes it."""
    random_model(kind).save_pretrained(folder)
    TOKENIZERS["llama"]().save_pretrained(folder)
    return folder


def random_network(kind: str) -> PreTrainedModel:
    """A random causal model of an architecture, in float32, whose weights are large enough for a mistake to show."""
    torch.manual_seed(0)
    shape = {"model_type": kind, **NARROW, **ARCHITECTURES[kind]}
    network = AutoModelForCausalLM.from_config(AutoConfig.for_model(**shape))
    with torch.no_grad():
        for weight in network.parameters():
            if weight.ndim == 2 and kind != "mamba":
                weight.mul_(5)
    return network


def saved(family: str, folder: Path, **changes) -> Path:
    """A random model of a family and its tokenizer in a folder, as `--model` takes it. changes: of its shape."""
    tokenizer = TOKENIZERS[family]()
    torch.manual_seed(0)
    ends = dict(bos_token_id=tokenizer.bos_token_id, eos_token_id=tokenizer.eos_token_id)
    shape = {"model_type": family, "max_position_embeddings": 512, **SHAPE, **NETWORKS[family], **ends, **changes}
    config = AutoConfig.for_model(**shape, vocab_size=len(tokenizer))
    AutoModelForCausalLM.from_config(config).save_pretrained(folder)
    tokenizer.save_pretrained(folder)
    return folder
