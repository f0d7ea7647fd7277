"""The sandbox tokenizer: each name and each word of the world is one token, other text is bytes.

So a rare name is never split into more tokens than a famous one, and each part of an answer is one
scored token: popularity stays the only difference. Built from parts that `AutoTokenizer` loads: a
byte-level BPE without merges that reads a known word whole, like Llama 3's (`ignore_merges`)."""

import re
from collections.abc import Iterable

from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import PreTrainedTokenizerFast

PAD, USER, ASSISTANT, END = "<|pad|>", "<|user|>", "<|assistant|>", "<|end|>"
SPECIALS = (PAD, USER, ASSISTANT, END)
CHAT_TEMPLATE = (
    "{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}<|assistant|>{{ message['content'] }}<|end|>"
    "{% else %}<|user|>{{ message['content'] }}{% endif %}"
    "{% endfor %}"
    "{% if add_generation_prompt %}<|assistant|>{% endif %}"
)


def build_tokenizer(names: Iterable[str], texts: Iterable[str]) -> PreTrainedTokenizerFast:
    """A tokenizer of the special tokens, 256 bytes, every name, and every word of the texts."""
    longest_first = sorted(set(names), key=lambda name: (-len(name), name))
    any_name = "|".join(map(re.escape, longest_first))
    pattern = rf" ?(?:{any_name})(?!\w)| ?\w+| ?[^\w\s]|\s"
    words = {piece for text in texts for piece in re.findall(pattern, f" {text}")}
    words = sorted(words | {f" {name}" for name in longest_first})
    byte_alphabet = sorted(pre_tokenizers.ByteLevel.alphabet())
    vocabulary = dict.fromkeys([*SPECIALS, *byte_alphabet, *(_byte_level(word) for word in words)])
    numbered = {token: i for i, token in enumerate(vocabulary)}
    tokenizer = Tokenizer(models.BPE(vocab=numbered, merges=[], ignore_merges=True))
    # so that a word is the same token after <|assistant|> as within a sentence
    tokenizer.normalizer = normalizers.Prepend(" ")
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Split(Regex(pattern), behavior="isolated"),
            pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    specials = [AddedToken(token, special=True, normalized=False) for token in SPECIALS]
    tokenizer.add_special_tokens(specials)
    return PreTrainedTokenizerFast(
        tokenizer_object=tokenizer,
        pad_token=PAD,
        eos_token=END,
        additional_special_tokens=[USER, ASSISTANT],
        chat_template=CHAT_TEMPLATE,
        padding_side="left",
        clean_up_tokenization_spaces=False,
        model_max_length=1024,
    )


def _byte_level(word: str) -> str:
    bytewise = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    (piece, _), *rest = bytewise.pre_tokenize_str(word)
    assert not rest
    return piece
