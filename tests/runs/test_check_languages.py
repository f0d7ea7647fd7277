"""A model that answers in sentences of a script without spaces, or with endings and articles, is known to know."""

import pytest

from adapop.config.presets import make_config
from adapop.facts.fact import Fact, FactSet
from adapop.probes.prompts import DIRECT
from adapop.runs.check import check
from spoken import taught

SETS = {
    "chinese": (
        "{s}的首都是哪里？",
        "{s}的首都是{a}。",
        "法国 巴黎 日本 东京 秘鲁 利马 挪威 奥斯陆 埃及 开罗 古巴 哈瓦那 伊朗 德黑兰 越南 河内",
    ),
    "arabic": (
        "ما هي عاصمة {s}؟",
        "عاصمة {s} هي {a}.",
        "فرنسا باريس اليابان طوكيو بيرو ليما النرويج أوسلو مصر القاهرة كوبا هافانا إيران طهران فيتنام هانوي",
    ),
}


@pytest.mark.slow
@pytest.mark.parametrize("language", SETS)
def test_a_model_of_any_script_is_seen_to_know_its_facts(language, tmp_path):
    asks, answers, names = SETS[language]
    pairs = list(zip(names.split()[::2], names.split()[1::2], strict=True))
    facts = [
        Fact(f"f{i}", asks.format(s=subject), answer, subject=subject, score=40.0 * 2**i)
        for i, (subject, answer) in enumerate(pairs)
    ]

    def in_sentences(tokenizer):
        def says(fact, question):
            turns = [{"role": "user", "content": question}]
            read = tokenizer.apply_chat_template(turns, tokenize=False, add_generation_prompt=True)
            return read, f"{answers.format(s=fact.subject, a=fact.answer)}<|im_end|>"

        return says

    folder = taught(tmp_path / "model", facts, "", in_sentences)
    own = FactSet(language, tuple(facts[:4]), tuple(facts[4:6]), tuple(facts[6:]))
    found = check(make_config("wga", model=str(folder), precision="float32", asking="chat"), own)
    assert found.prompting.unknown == ()
    assert [row.recall for row in found.known if (row.form, row.tier) == (DIRECT, "all")] == [1.0]
    assert found.prompting.own_words, "the answer stands at the end of a sentence"
