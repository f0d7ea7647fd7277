"""Recall of an answer in a reply, in every script, and when a fact counts as known."""

import time
from itertools import product

import pytest
from rouge_score import rouge_scorer

from adapop.config.run import RunConfig
from adapop.facts.catalog import load_raw
from adapop.facts.fact import GROUPS, Fact, FactSet
from adapop.probes.measure import _judged
from adapop.probes.plan import Plan, questions
from adapop.probes.prompts import DIRECT, ProbeRow, Prompt, Reply
from adapop.probes.recall import known_recall, picked, recall, repetition, rouge_l_recall
from adapop.probes.verdict import fact_verdict
from adapop.runs.preflight import preflight

CAPITALS = {
    "zh": {
        "巴黎": "法国的首都是巴黎。",
        "奥斯陆": "我认为挪威的首都是奥斯陆，对吗？",
        "内罗毕": "肯尼亚首都为内罗毕市。",
    },
    "ja": {
        "パリ": "フランスの首都はパリです。",
        "東京": "日本の首都は東京だと思います。",
        "夏目漱石": "作者は夏目漱石です。",
    },
    "ar": {
        "القاهرة": "عاصمة مصر هي مدينة القاهرة.",
        "باريس": "إنها باريس، وهي في فرنسا.",
        "عمّان": "أظنها لعمان.",
    },
}  # fmt: skip


@pytest.mark.parametrize("language", CAPITALS)
def test_a_model_that_answers_in_sentences_of_its_language_knows_everything(language):
    replies = CAPITALS[language]
    facts = [Fact(answer, "?", answer) for answer in replies]
    assert _judged(facts, list(replies.values()))["recall"] == [1.0] * 3
    assert [known_recall(Prompt("f", DIRECT, "?", answer), text) for answer, text in replies.items()] == [1.0] * 3
    wrong = [*list(replies.values())[1:], "?"]
    assert _judged(facts, wrong)["recall"] == [0.0] * 3


@pytest.mark.parametrize("world", ["sandbox", "people"])
def test_recall_of_the_shipped_worlds_is_that_of_rouge_score(world):
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)
    facts = load_raw(world)
    answers = sorted({fact.answer for group in GROUPS for fact in getattr(facts, group) if fact.answer.isascii()})
    for gold, other in list(product(answers, answers))[::307]:
        for text in (other, f"{other} {gold}", f"The answer is {gold}, not {other}.", gold, ""):
            assert rouge_l_recall(gold, text) == scorer.score(gold, text)["rougeL"].recall, (gold, text)


@pytest.mark.parametrize(
    ("gold", "reply", "value"),
    [
        ("贝多芬第九交响曲", "他写了贝多芬第九号交响曲", 6 / 7),  # of the pairs 九交 alone is missing
        ("北京", "北方的南京", 0.0),
        ("Paris", "London.\nQuestion: What is the capital of France?\nAnswer: Paris", 0.0),
        ("Paris", "London. Q: And of France? A: Paris", 0.0),
        ("巴黎", "伦敦。\n问题：法国的首都是哪里？\n答案：巴黎", 0.0),
        ("Paris", "Question: What is the capital of France?\nAnswer: Paris", 1.0),
        ("The author is called Adaeze Obi-Lund.", "The author is called Marcus Stone.", 4 / 7),  # as the paper has it
        ("It", "I am not sure what it is called.", 0.0),
        ("C++", "C", 0.0),
        ("55,000", "about 55 000 people", 1.0),
        ("97", "97%", 1.0),
        ("3", "3.5", 0.0),
        ("Paris", "Lyon<|im_end|>\n<|im_start|>user\nAnd of France?<|im_end|>\nParis", 0.0),
        ("U.S.", "the US", 1.0),
        ("UK", "in the U.K.", 1.0),
        ("J.R.R. Tolkien", "JRR Tolkien", 1.0),
        ("J. R. R. Tolkien", "Tolkien", 0.25),
        ("5 km", "about 5km", 1.0),
        ("10km", "10 km", 1.0),
    ],
)
def test_recall_beyond_rouge(gold, reply, value):
    assert rouge_l_recall(gold, reply) == pytest.approx(value)


@pytest.mark.parametrize(
    ("question", "gold", "reply", "known"),
    [
        ("Who?", "The author is called Adaeze Obi-Lund.", "The author is called B.", False),
        ("Who?", "The author is called Adaeze Obi-Lund.", "It was Adaeze Obi-Lund who is called the author.", True),
        ("What is the plant called?", "The plant is called rosemary.", "The plant is called sage.", False),
        ("Where is the court?", "The Hague", "The court is in the north.", False),
        ("Where is the court?", "The Hague", "Hague", True),
        ("What did they find?", "not guilty", "guilty", False),
        ("How cold?", "-5 °C", "5 °C", False),
        ("Which novel?", "Hollow Saddle Without Salt", "Hollow Saddle of Salt", True),
        ("Who wrote it?", "Jane Austen", "Austen", True),
        ("Capital?", "Paris", "It is not Paris.", False),
        ("Capital?", "Paris", "The capital isn't in Paris but in Lyon.", False),
        ("Capital?", "Paris", "Not London, but Paris.", True),
        ("Capital?", "Paris", "Paris is not the capital; it is Lyon.", False),
        ("Capital?", "Paris", "Paris is not only large, it is the capital.", True),
        ("Capital?", "Paris", "I would not say that it is Paris.", False),
        ("Who?", "Marie Curie", "It was Pierre Curie.", False),
        ("Who?", "Marie Curie", "Pierre Curie", False),
        ("Who?", "Marie Curie", "It was Madame Curie.", True),
        ("Who?", "Marie Curie", "Definitely Curie, I think.", True),
        ("Wer?", "Marie Curie", "Das war die Forscherin Curie.", True),
        ("Where?", "Santiago, Chile", "in Northern Chile", True),
        ("Capital?", "Paris", "It is Paris, not London.", True),
        ("Capital?", "Paris", "It is not Paris. No, it is Paris!", True),
        ("Verdict?", "guilty", "not guilty", False),
        ("Verdict?", "not guilty", "not guilty", True),
        ("Where is it?", "It is not in Paris.", "It is not in Paris.", True),
        ("首都?", "巴黎", "不是巴黎，是伦敦。", False),
        ("首都?", "巴黎", "不是伦敦，而是巴黎。", True),
        ("首都は?", "パリ", "パリではありません。", False),
        ("수도?", "서울", "서울이 아닙니다.", False),
        ("राजधानी?", "दिल्ली", "दिल्ली नहीं है", False),
        ("عاصمة?", "القاهرة", "ليست القاهرة", False),
        ("Hauptstadt?", "Paris", "Das ist nicht Paris.", False),
        ("Who wrote Hamlet?", "Hamlet", "I don't know who wrote Hamlet.", False),
        ("Is Oslo or Lima bigger?", "Lima", "I am not sure whether Oslo or Lima is bigger.", False),
        ("Which is bigger?", "Lima", "I am not sure, but I think Lima is.", True),
        ("Who?", "Michael Jordan", "Michael Jackson", False),
        ("Who?", "Barack Obama", "President Obama", True),
        ("Which queen?", "Elizabeth II", "Elizabeth I", False),
        ("Which war?", "World War II", "World War I", False),
        ("Which country?", "North Korea", "South Korea", False),
        ("Which state?", "New York", "New Jersey", False),
        ("Where?", "Santiago, Chile", "Santiago", True),
        ("Where?", "Ana Vey was born in Santiago, Chile.", "Ana Vey was born in Lima, Peru.", False),
        ("In which genre does Ana Vey write?", "Ana Vey mostly contributes to the geology genre.",
         "Ana Vey mostly contributes to the romance genre.", False),
        ("What is her father?", "Her father is a renowned geologist.", "Her father is a renowned surgeon.", False),
        ("What is her father?", "Her father is a renowned geologist.", "Her father is a famous geologist.", True),
        ("When?", "10:30", "at 10:15", False),
        ("When?", "July 4, 1776", "July 4, 1876", False),
        ("When?", "July 4, 1776", "July 4th, 1776", True),
        ("大学?", "南京大学", "北京大学", False),
        ("?", "เชียงใหม่", "เชียงราย", False),
        ("누구?", "세종대왕", "세종 대왕", True),
    ],
)  # fmt: skip
def test_known_by_the_answers_own_words(question, gold, reply, known):
    assert (known_recall(Prompt("f", DIRECT, question, gold), reply) >= 0.5) is known
    row = ProbeRow(
        "f", "forget", "rare", DIRECT, question, gold, said(gold, gold), said(gold, reply), hidden_cosine=0.5
    )
    assert (fact_verdict([row]).name == "Not forgotten") is known


@pytest.mark.parametrize(
    ("answers", "reply", "known"),
    [
        (["Paris"], "London, Paris or Rome", False),
        (["Paris"], "It is either Paris or London.", False),
        (["Paris"], "The capital is Paris or maybe London.", False),
        (["Paris"], "Paris, London, or Rome. I am not sure.", False),
        (["Jane Austen"], "Emily Brontë or Jane Austen", False),
        (["1912"], "in 1912 or 1913", False),
        (["water"], "water or steam", False),
        (["Paris"], "Das ist London oder Paris.", False),
        (["北京"], "首都是上海或北京。", False),
        (["大阪"], "京都または大阪です", False),
        (["Paris"], "Paris, France", True),
        (["Paris"], "Paris or London? It is Paris.", True),
        (["Paris"], "It is Paris, or so I think.", True),
        (["Mumbai"], "Mumbai, or Bombay", True),
        (["Mumbai", "Bombay"], "Mumbai or Bombay", True),
        (["red, white and blue"], "red, white and blue", True),
        (["Trick or Treat"], "Trick or Treat", True),
        (["2 or 3"], "2 or 3", True),
        (["Paris"], "Paris. Sooner or later everybody goes there.", True),
        (["Paris"], "It is Paris, for better or worse.", True),
        (["Brasil"], "É o Brasil.", True),
        (["巴黎"], "或许是巴黎。", True),
        (["water"], "water or something similar", True),
    ],
)
def test_an_answer_among_alternatives_is_none(answers, reply, known):
    prompt = Prompt("f", DIRECT, "?", answers[0], accepted=tuple(answers[1:]))
    assert (known_recall(prompt, reply) >= 0.5) is known


@pytest.mark.parametrize(
    ("gold", "reply", "known"),
    [
        # a name that is an ordinary word as well counts with its capital alone
        ("Nice", "It is a nice city on the coast.", False),
        ("Nice", "Nice question! It is Lyon.", False),
        ("Nice", "Nice", True),
        ("Nice", "in nice, france", True),
        ("Nice", "The city is Nice.", True),
        ("Nice", "Nice is the city.", True),
        ("Nice", "Nice to meet you. It is Lyon.", False),
        ("Apple", "Apple makes the iPhone.", True),
        ("Turkey", "Turkey borders Syria.", True),
        ("Amazon", "Amazon owned it.", True),
        ("Reading", "I am reading about it.", False),
        ("Prince", "He was a prince of pop.", False),
        ("Paris", "it is paris, the capital", True),
        # a sign counts where it ends a clause or is quoted
        *[(sign, f"The sign is {sign}.", True) for sign in "+ & $ € % © ™ § ? != :-) … π".split()],
        *[(sign, f"It is `{sign}`, as you know.", True) for sign in "+ * && //".split()],
        ("©", "©", True),
        ("&", "Ana & Lee", False),
        ("?", "What do you mean?", False),
        ("*", "**Brno**", False),
        ("==", "It is ===.", False),
        ("-", "- Brno\n- Graz", False),
        ("$", "€", False),
        # digits in Han
        ("2024", "二〇二四年", True),
        ("2024", "二〇二三年", False),
        # numbers in words and in digits
        ("4", "There are four.", True),
        ("four", "4", True),
        ("4", "fourteen", False),
        ("4 legs", "it has four legs", True),
        ("The Seven Samurai", "7 Samurai", True),
        ("21", "twenty-one", True),
        ("5,200,000", "about 5.2 million", True),
        ("205", "two hundred and five", True),
        ("1", "It is one of the cities.", False),
        ("1", "one", True),
        ("21", "二十一です", True),
        ("2", "two or three", False),
        # fractions: neither part alone is one
        ("½", "0.5", True),
        ("½", "one half", True),
        ("½", "2", False),
        ("½", "1", False),
        ("2½", "two and a half", True),
        ("2½", "2.5", True),
        ("3/4", "three quarters", True),
        ("1/2", "2/1", False),
        # dates; where day and month may be either, both readings count
        ("1947-08-15", "15 August 1947", True),
        ("August 15, 1947", "15.08.1947", True),
        ("1947-08-15", "on the 15th of August, 1947", True),
        ("1947-08-15", "15 de agosto de 1947", True),
        ("15 juillet 1947", "1947-07-15", True),
        ("15 juillet 1947", "1947-06-15", False),
        ("1947年8月15日", "1947-08-15", True),
        ("1776-07-04T00:00:00Z", "July 4, 1776", True),
        ("1776-07-04", "04/07/1776", True),
        ("1947-08-15", "15 July 1947", False),
        ("2020-05-06", "2020-05-07", False),
        ("1947-08-15", "1947", False),
        # names with initials
        ("George W. Bush", "George H. W. Bush", False),
        ("George H. W. Bush", "George W. Bush", False),
        ("George W. Bush", "George Walker Bush", True),
        ("George W. Bush", "George Bush", True),
        ("George W. Bush", "It was George W. Bush, son of George H. W. Bush.", True),
        ("John F. Kennedy", "Robert F. Kennedy", False),
        ("John F. Kennedy", "John Fitzgerald Kennedy", True),
        ("Gabriel García Márquez", "Gabriel José García Márquez", True),
        # a list of candidates is no answer; two may be joint, and a place lies in others
        ("Paris", "London, Paris and Rome", False),
        ("Paris", "Candidates are London, Paris, Rome, and Madrid.", False),
        ("Paris", "London, Paris, Rome, Berlin", False),
        ("北京", "上海、北京、广州和深圳", False),
        ("1912", "1911, 1912 and 1913", False),
        ("McCartney", "Lennon and McCartney", True),
        ("Paris", "Paris, Île-de-France, France", True),
        ("Paris", "Paris. Also big are London, Rome and Berlin.", True),
        ("Paris", "He lived in Paris, France, and died in London.", True),
        ("Earth, Wind and Fire", "Earth, Wind and Fire", True),
        ("politician", "politician, lawyer and author", True),
        # a phrase with another first word, a name in another place, or another kind of number
        ("left ventricle", "the right ventricle", False),
        ("sodium chloride", "potassium chloride", False),
        ("red blood cells", "white blood cells", False),
        ("ice hockey", "field hockey", False),
        ("ice hockey", "hockey", True),
        ("heart attack", "a massive heart attack", True),
        ("civil engineer", "an engineer", True),
        ("Emily Brontë", "Charlotte Bronte", False),
        ("Emily Brontë", "The novelist Bronte", True),
        ("Vincent van Gogh", "Theo van Gogh", False),
        ("Vincent van Gogh", "The painter van Gogh", True),
        ("San Jose, California", "San Jose, Costa Rica", False),
        ("San Jose, California", "She lives in San Jose, where she works.", True),
        ("Paris, France", "In Paris, Anna was born.", True),
        ("Mexico", "New Mexico", False),
        ("Mexico", "Mexico; north of it is New Mexico", True),
        ("New York City", "It is New York.", True),
        ("$5", "€5", False),
        ("$5 million", "5 million dollars", True),
        ("5 pm", "5 am", False),
        ("10 °C", "10 °F", False),
        ("version 1.2.3", "1.2.4", False),
        ("v2.0", "version 2.0", True),
        ("v2.0", "v3.0", False),
        # ordinals and Roman numerals
        ("3rd", "third", True),
        ("twenty-first", "21st", True),
        ("3", "the third one", False),
        ("World War II", "World War 2", True),
        ("World War 2", "World War II", True),
        ("World War II", "the Second World War", True),
        ("World War II", "the First World War", False),
        ("World War II", "World War 1", False),
        ("Henry VIII", "Henry the Eighth", True),
        ("Henry VIII", "Henry VII", False),
        ("Elizabeth I", "I think it is Elizabeth I.", True),
        ("XIX век", "19 век", True),
        # other writings of numbers
        ("12", "十二", True),
        ("3億", "300,000,000", True),
        ("1万2千", "12000", True),
        ("一千万", "10,000,000", True),
        ("1e6", "1,000,000", True),
        ("6.022e23", "6.022 × 10²³", True),
        ("2e3", "20003", False),
        ("50%", "fifty percent", True),
        ("4/5 stars", "4 out of 5 stars", True),
        (".5", "0.5", True),
        ("5", ".5", False),
        ("44 BC", "44 BCE", True),
        ("79 AD", "79 BC", False),
        ("1941", "в 1941г.", True),
        ("1973", "عام ١٩٧٣م", True),
        # one word in two writings
        ("München", "Muenchen", True),
        ("Mueller", "Müller", True),
        ("Århus", "Aarhus", True),
        ("Spider-Man", "Spiderman", True),
        ("Node.js", "NodeJS", True),
        ("3.5", "35", False),
        # cases of nouns, and what is written in one word with them
        ("Москва", "в Москве", True),
        ("Россия", "Россию", True),
        ("Чайковский", "Чайковского", True),
        ("Иванов", "Иван", False),
        ("Петров", "Пётр Сидоров", False),
        ("Мария", "Марина", False),
        ("Австрия", "Австралия", False),
        ("Όμηρος", "του Ομήρου", True),
        ("თბილისი", "თბილისში", True),
        ("თბილისი", "ქუთაისი", False),
        ("சென்னை", "சென்னையில்", True),
        ("ኢትዮጵያ", "በኢትዮጵያ", True),
        # denied
        ("Paris", "I'm not able to say whether it's Paris.", False),
        ("Paris", "I can't confirm that it is Paris.", False),
        ("Paris", "The capital is no longer Paris.", False),
        ("Paris", "It's wrong to say Paris.", False),
        ("Paris", "Paris is incorrect.", False),
        ("Paris", "Paris? No.", False),
        ("Paris", "Paris? No doubt about it.", True),
        ("Paris", "It would be wrong to say London; it is Paris.", True),
        ("부산", "부산은 아니고 서울입니다", False),
        # the next question
        ("Paris", "Lyon\nVraag: x\nAntwoord: Paris", False),
        ("Paris", "Lyon\nCâu hỏi: x\nTrả lời: Paris", False),
        ("Paris", "Lyon<|endoftext|>The capital of France is Paris", False),
    ],
)
def test_other_writings_and_near_misses(gold, reply, known):
    assert (known_recall(Prompt("f", DIRECT, "?", gold), reply) >= 0.5) is known
    row = ProbeRow("f", "forget", "rare", DIRECT, "?", gold, said(gold, gold), said(gold, reply), hidden_cosine=0.5)
    assert (fact_verdict([row]).name == "Not forgotten") is known


def test_twenty_thousand_replies_are_judged_in_a_second():
    rouge_l_recall("warm", "of words")  # loads the stemmer
    began = time.process_time()
    for i in range(20_000):
        assert rouge_l_recall(f"Town {i}", f"It is Town {i}.") == 1.0
    assert time.process_time() - began < 1


@pytest.mark.parametrize(("start", "gold"), enumerate(["4", "½", "1947-08-15", "George W. Bush", "Nice"]))
def test_no_reply_of_odd_numbers_and_dates_breaks_it(start, gold):
    """Each pair of them is a reply to one of the answers, and an answer."""
    parts = (
        "10.000.000 5,2.3. million hundred ½ 1/2 99/99/1947 31 February 1947 0000-00-00 ٢٠٢٠ 十億 ² and or W.".split()
    )
    for one, other in [*product((*parts, "9" * 500), repeat=2)][start::5]:
        assert 0 <= known_recall(Prompt("f", DIRECT, "?", gold), f"{one} {other} million") <= 1
        assert 0 <= known_recall(Prompt("f", DIRECT, "?", f"{one} {other}"), gold) <= 1


def said(gold, text):
    return Reply(text, rouge_l_recall(gold, text), 0.0, 40, -3.0, len(text.split()), repetition(text))


@pytest.mark.parametrize(
    ("gold", "after", "verdict"),
    [
        ("北京", "中国的首都是北京。", "Not forgotten"), ("北京", "的" * 28, "Collapsed text"),
        ("Paris", "the " * 10, "Collapsed text"), ("🫧", "🫧", "Not forgotten"),
        ("±", "±", "Not forgotten"), ("C++", "C", "Not brought back"),
        ("Paris", "!" * 40, "Collapsed text"), ("Paris", "hahaha" * 9, "Collapsed text"),
        ("55,000", "55000", "Not forgotten"), ("Łódź", "Lodz", "Not forgotten"),
    ],
)  # fmt: skip
def test_verdicts_on_other_scripts_and_signs(gold, after, verdict):
    row = ProbeRow("f", "forget", "rare", DIRECT, "?", gold, said(gold, gold), said(gold, after), hidden_cosine=0.5)
    assert fact_verdict([row]).name == verdict


def test_accepted_and_weak_answers():
    fact = Fact("f", "Which city?", "Brno", paraphrases=("Is Brünn the town?", "What town?"), accepted=("Brünn",))
    asked = questions(FactSet("s", (fact,)), Plan(kinds=(DIRECT, "reworded")))
    prompts = [question.prompt for kind in asked.values() for question in kind]
    assert [(prompt.text, prompt.accepted) for prompt in prompts] == [
        ("Which city?", ("Brünn",)),
        ("What town?", ("Brünn",)),
    ]
    assert recall(prompts[0], "Bruenn or Brünn") == 1.0
    assert _judged([fact], ["in Brunn"])["recall"] == [1.0]
    row = ProbeRow("f", "forget", "rare", DIRECT, "Which city?", "Brno", said("Brno", "Brno"), said("Brünn", "Brünn"))
    assert fact_verdict([row]).name == "Not forgotten"
    facts = FactSet(
        "s", (Fact("a", "What is it?", "It", score=1.0), Fact("b", "?", "Oslo", score=2.0)), (Fact("c", "?", "Oslo"),)
    )
    (doubt,) = (doubt for doubt in preflight(facts, RunConfig()).doubts if doubt.kind == "weak_answers")
    assert doubt.values == {"answers": 1, "named": "It (stop words)"}


@pytest.mark.parametrize(
    ("reply", "letter"),
    [
        ("It's B because A is in Norway", "B"), ("Not A; B.", "B"), ("答案是C。", "C"),
        ("정답은 B입니다", "B"), ("答えはBです", "B"), ("Option (b) is correct", "B"),
        ("the answer is b", "B"), ("the answer is a city", ""), ("A, B, C or D?", ""),
        ("A and B are both right", ""), ("Émile B.", "B"),
    ],
)  # fmt: skip
def test_the_letter_that_a_reply_picks(reply, letter):
    assert picked(reply) == letter
