import time
from dataclasses import replace
from itertools import product

import pytest
from rouge_score import rouge_scorer

from adapop.config.presets import make_config
from adapop.config.run import RunConfig
from adapop.facts.catalog import load_raw
from adapop.facts.fact import GROUPS, PEOPLE, SANDBOX, Fact, FactSet
from adapop.facts.world import sandbox_facts
from adapop.model.loading import adapted_model
from adapop.probes import measure
from adapop.probes.measure import _per_reply
from adapop.probes.plan import Plan, questions
from adapop.probes.prompts import CHOICE, DIRECT, ProbeRow, Prompt, Reply
from adapop.probes.recall import known_recall, picked, recall, repetition, rouge_l_recall
from adapop.probes.verdict import fact_verdict
from adapop.progress import Progress
from adapop.runs.preflight import preflight

SENTENCES = {  # answers, each in a sentence of its language
    "巴黎": "法国的首都是巴黎。", "奥斯陆": "我认为挪威的首都是奥斯陆，对吗？", "内罗毕": "肯尼亚首都为内罗毕市。",
    "パリ": "フランスの首都はパリです。", "東京": "日本の首都は東京だと思います。", "夏目漱石": "作者は夏目漱石です。",
    "القاهرة": "عاصمة مصر هي مدينة القاهرة.", "باريس": "إنها باريس، وهي في فرنسا.", "عمّان": "أظنها لعمان."}  # fmt: skip


@pytest.mark.slow
@pytest.mark.parametrize("world", ["sandbox", "people"])
def test_recall_of_the_shipped_worlds_is_that_of_rouge_score(world):
    scorer = rouge_scorer.RougeScorer(["rougeL"], use_stemmer=True)
    facts = load_raw(world)
    answers = sorted({fact.answer for group in GROUPS for fact in getattr(facts, group) if fact.answer.isascii()})
    for gold, other in list(product(answers, answers))[::997]:
        for text in (other, f"{other} {gold}", f"The answer is {gold}, not {other}.", gold, ""):
            assert rouge_l_recall(gold, text) == scorer.score(gold, text)["rougeL"].recall, (gold, text)


@pytest.mark.parametrize(("gold", "generation", "folded", "strict"), [
    ("Jane Austen", "Jane Austen", 1.0, 1.0), ("Jane Austen", "It was jane austen, of course!", 1.0, 1.0),
    ("Jane Austen", "Austen", 0.5, 0.5), ("Jane Austen", "Austen Jane", 0.5, 0.5), ("Jane Austen", "", 0.0, 0.0),
    ("the quick brown fox", "a quick fox and the brown bear", 0.5, 0.5), ("walking dogs", "walk dog", 1.0, 1.0),
    ("São Paulo", "Sao Paulo", 1.0, 1 / 3), ("Gödel", "Godel", 1.0, 0.0), ("Weißbier", "WEISSBIER", 1.0, 0.0),
    ("Dvořák", "Dvořák", 1.0, 1.0), ("Лев Толстой", "толстой", 0.5, 0.0), ("北京", "北京", 1.0, 0.0),
    ("北京", "上海", 0.0, 0.0), ("東京 タワー", "東京", 1 / 3, 0.0), ("नई दिल्ली", "दिल्ली", 0.5, 0.0),
    ("서울", "서울", 1.0, 0.0), ("القاهرة", "القاهرة", 1.0, 0.0),
])  # fmt: skip
def test_rouge_l_recall(gold, generation, folded, strict):
    assert rouge_l_recall(gold, generation) == pytest.approx(folded)
    assert rouge_l_recall(gold, generation, fold=False) == pytest.approx(strict)


@pytest.mark.parametrize(("gold", "reply", "value"), [
    *((answer, text, float(answer == gold)) for answer in SENTENCES for gold, text in SENTENCES.items()),
    ("贝多芬第九交响曲", "他写了贝多芬第九号交响曲", 6 / 7),  # of the pairs 九交 alone is missing
    ("北京", "北方的南京", 0.0), ("Paris", "London.\nQuestion: What is the capital of France?\nAnswer: Paris", 0.0),
    ("Paris", "London. Q: And of France? A: Paris", 0.0),
    ("巴黎", "伦敦。\n问题：法国的首都是哪里？\n答案：巴黎", 0.0),
    ("Paris", "Question: What is the capital of France?\nAnswer: Paris", 1.0),
    ("The author is called Adaeze Obi-Lund.", "The author is called Marcus Stone.", 4 / 7),  # as the paper has it
    ("It", "I am not sure what it is called.", 0.0), ("C++", "C", 0.0), ("55,000", "about 55 000 people", 1.0),
    ("97", "97%", 1.0), ("3", "3.5", 0.0),
    ("Paris", "Lyon<|im_end|>\n<|im_start|>user\nAnd of France?<|im_end|>\nParis", 0.0), ("U.S.", "the US", 1.0),
    ("UK", "in the U.K.", 1.0), ("J.R.R. Tolkien", "JRR Tolkien", 1.0), ("J. R. R. Tolkien", "Tolkien", 0.25),
    ("5 km", "about 5km", 1.0), ("10km", "10 km", 1.0),
])  # fmt: skip
def test_recall_beyond_rouge(gold, reply, value):
    assert rouge_l_recall(gold, reply) == pytest.approx(value)


# answer, the replies that say it, those that do not, and the question where it matters
SAID = [
    # the answer's own words, denials, and whose question it is
    ("The author is called Adaeze Obi-Lund.", "It was Adaeze Obi-Lund who is called the author.",
     "The author is called B.", "Who?"),
    ("The plant is called rosemary.", "", "The plant is called sage.", "What is the plant called?"),
    ("The Hague", "Hague", "The court is in the north.", "Where is the court?"),
    ("not guilty", "", "guilty", "What did they find?"), ("-5 °C", "", "5 °C", "How cold?"),
    ("Hollow Saddle Without Salt", "Hollow Saddle of Salt", "", "Which novel?"),
    ("Jane Austen", "Austen", "", "Who wrote it?"),
    ("Paris",
     "Not London, but Paris. / Paris is not only large, it is the capital. / It is Paris, not London. / "
     "It is not Paris. No, it is Paris!",
     "It is not Paris. / The capital isn't in Paris but in Lyon. / Paris is not the capital; it is Lyon. / "
     "I would not say that it is Paris.", "Capital?"),
    ("Marie Curie", "It was Madame Curie. / Definitely Curie, I think.", "It was Pierre Curie. / Pierre Curie",
     "Who?"),
    ("Marie Curie", "Das war die Forscherin Curie.", "", "Wer?"),
    ("Santiago, Chile", "in Northern Chile / Santiago", "", "Where?"), ("guilty", "", "not guilty", "Verdict?"),
    ("not guilty", "not guilty", "", "Verdict?"), ("It is not in Paris.", "It is not in Paris.", "", "Where is it?"),
    ("巴黎", "不是伦敦，而是巴黎。", "不是巴黎，是伦敦。", "首都?"), ("パリ", "", "パリではありません。", "首都は?"),
    ("서울", "", "서울이 아닙니다.", "수도?"), ("दिल्ली", "", "दिल्ली नहीं है", "राजधानी?"),
    ("القاهرة", "", "ليست القاهرة", "عاصمة?"), ("Paris", "", "Das ist nicht Paris.", "Hauptstadt?"),
    ("Hamlet", "", "I don't know who wrote Hamlet.", "Who wrote Hamlet?"),
    ("Lima", "", "I am not sure whether Oslo or Lima is bigger.", "Is Oslo or Lima bigger?"),
    ("Lima", "I am not sure, but I think Lima is.", "", "Which is bigger?"),
    ("Michael Jordan", "", "Michael Jackson", "Who?"), ("Barack Obama", "President Obama", "", "Who?"),
    ("Elizabeth II", "", "Elizabeth I", "Which queen?"), ("World War II", "", "World War I", "Which war?"),
    ("North Korea", "", "South Korea", "Which country?"), ("New York", "", "New Jersey", "Which state?"),
    ("Ana Vey was born in Santiago, Chile.", "", "Ana Vey was born in Lima, Peru.", "Where?"),
    ("Ana Vey mostly contributes to the geology genre.", "", "Ana Vey mostly contributes to the romance genre.",
     "In which genre does Ana Vey write?"),
    ("Her father is a renowned geologist.", "Her father is a famous geologist.", "Her father is a renowned surgeon.",
     "What is her father?"),
    ("10:30", "", "at 10:15", "When?"), ("July 4, 1776", "July 4th, 1776", "July 4, 1876", "When?"),
    ("南京大学", "", "北京大学", "大学?"), ("เชียงใหม่", "", "เชียงราย"), ("세종대왕", "세종 대왕", "", "누구?"),
    # a name that is an ordinary word as well counts with its capital alone
    ("Nice", "Nice / in nice, france / The city is Nice. / Nice is the city.",
     "It is a nice city on the coast. / Nice question! It is Lyon. / Nice to meet you. It is Lyon."),
    ("Apple", "Apple makes the iPhone.", ""), ("Turkey", "Turkey borders Syria.", ""),
    ("Amazon", "Amazon owned it.", ""), ("Reading", "", "I am reading about it."),
    ("Prince", "", "He was a prince of pop."), ("Paris", "it is paris, the capital", ""),
    # a sign counts where it ends a clause or is quoted
    ("©", "©", ""), ("&", "", "Ana & Lee"), ("?", "", "What do you mean?"), ("*", "", "**Brno**"),
    ("==", "", "It is ===."), ("-", "", "- Brno\n- Graz"), ("$", "", "€"),
    # digits in Han
    ("2024", "二〇二四年", "二〇二三年"),
    # numbers in words and in digits
    ("4", "There are four.", "fourteen"), ("four", "4", ""), ("4 legs", "it has four legs", ""),
    ("The Seven Samurai", "7 Samurai", ""), ("21", "twenty-one / 二十一です", ""),
    ("5,200,000", "about 5.2 million", ""), ("205", "two hundred and five", ""),
    ("1", "one", "It is one of the cities."), ("2", "", "two or three"),
    # fractions: neither part alone is one
    ("½", "0.5 / one half", "2 / 1"), ("2½", "two and a half / 2.5", ""), ("3/4", "three quarters", ""),
    ("1/2", "", "2/1"),
    # dates; where day and month may be either, both readings count
    ("1947-08-15", "15 August 1947 / on the 15th of August, 1947 / 15 de agosto de 1947", "15 July 1947 / 1947"),
    ("August 15, 1947", "15.08.1947", ""), ("15 juillet 1947", "1947-07-15", "1947-06-15"),
    ("1947年8月15日", "1947-08-15", ""), ("1776-07-04T00:00:00Z", "July 4, 1776", ""),
    ("1776-07-04", "04/07/1776", ""), ("2020-05-06", "", "2020-05-07"),
    # names with initials
    ("George W. Bush", "George Walker Bush / George Bush / It was George W. Bush, son of George H. W. Bush.",
     "George H. W. Bush"),
    ("George H. W. Bush", "", "George W. Bush"), ("John F. Kennedy", "John Fitzgerald Kennedy", "Robert F. Kennedy"),
    ("Gabriel García Márquez", "Gabriel José García Márquez", ""),
    # a list of candidates is no answer; two may be joint, and a place lies in others
    ("Paris",
     "Paris, Île-de-France, France / Paris. Also big are London, Rome and Berlin. / "
     "He lived in Paris, France, and died in London. / Paris, France",
     "London, Paris and Rome / Candidates are London, Paris, Rome, and Madrid. / London, Paris, Rome, Berlin"),
    ("🫧", "🫧", ""), ("±", "±", ""), ("55,000", "55000", ""), ("Łódź", "Lodz", ""),
    ("北京", "", "上海、北京、广州和深圳"), ("1912", "", "1911, 1912 and 1913"),
    ("McCartney", "Lennon and McCartney", ""), ("Earth, Wind and Fire", "Earth, Wind and Fire", ""),
    ("politician", "politician, lawyer and author", ""),
    # a phrase with another first word, a name in another place, or another kind of number
    ("St. George's", "Saint George's", "St. John's"), ("J. K. Rowling", "J.K. Rowling", "J. K. Simmons"),
    ("Mt. Everest", "Mt Everest", "Mt. Fuji"), ("John F. Kennedy", "", "John F. Smith"),
    ("July 1969", "20 July 1969 / Juli 1969 / In 1969.", "June 1969 / It was in May 1969."),
    ("El Cairo", "Es El Cairo. / Cairo", "El capital de Egipto es el 511,000. / El Alamein", "¿Capital de Egipto?"),
    ("Ciudad de México", "Ciudad de México", "El capital de México es el 751,000.", "¿Capital de México?"),
    ("left ventricle", "", "the right ventricle"), ("sodium chloride", "", "potassium chloride"),
    ("red blood cells", "", "white blood cells"), ("ice hockey", "hockey", "field hockey"),
    ("heart attack", "a massive heart attack", ""), ("civil engineer", "an engineer", ""),
    ("Emily Brontë", "The novelist Bronte", "Charlotte Bronte"),
    ("Vincent van Gogh", "The painter van Gogh", "Theo van Gogh"),
    ("San Jose, California", "She lives in San Jose, where she works.", "San Jose, Costa Rica"),
    ("Paris, France", "In Paris, Anna was born.", ""), ("Mexico", "Mexico; north of it is New Mexico", "New Mexico"),
    ("New York City", "It is New York.", ""), ("$5", "", "€5"), ("$5 million", "5 million dollars", ""),
    ("5 pm", "", "5 am"), ("10 °C", "", "10 °F"), ("version 1.2.3", "", "1.2.4"), ("v2.0", "version 2.0", "v3.0"),
    # ordinals and Roman numerals
    ("3rd", "third", ""), ("twenty-first", "21st", ""), ("3", "", "the third one"),
    ("World War II", "World War 2 / the Second World War", "the First World War / World War 1"),
    ("World War 2", "World War II", ""), ("Henry VIII", "Henry the Eighth", "Henry VII"),
    ("Elizabeth I", "I think it is Elizabeth I.", ""), ("XIX век", "19 век", ""),
    # other writings of numbers
    ("12", "十二", ""), ("3億", "300,000,000", ""), ("1万2千", "12000", ""), ("一千万", "10,000,000", ""),
    ("1e6", "1,000,000", ""), ("6.022e23", "6.022 × 10²³", ""), ("2e3", "", "20003"), ("5e12", "", "5×10¹²³"),
    ("50%", "fifty percent", ""), ("4/5 stars", "4 out of 5 stars", ""),
    (".5", "0.5", ""), ("5", "", ".5"), ("44 BC", "44 BCE", ""),
    ("79 AD", "", "79 BC"), ("1941", "в 1941г.", ""), ("1973", "عام ١٩٧٣م", ""),
    # one word in two writings
    ("München", "Muenchen", ""), ("Mueller", "Müller", ""), ("Århus", "Aarhus", ""), ("Spider-Man", "Spiderman", ""),
    ("Node.js", "NodeJS", ""), ("3.5", "", "35"),
    # cases of nouns, and what is written in one word with them
    ("Москва", "в Москве", ""), ("Россия", "Россию", ""), ("Чайковский", "Чайковского", ""), ("Иванов", "", "Иван"),
    ("Петров", "", "Пётр Сидоров"), ("Мария", "", "Марина"), ("Австрия", "", "Австралия"),
    ("Όμηρος", "του Ομήρου", ""), ("თბილისი", "თბილისში", "ქუთაისი"), ("சென்னை", "சென்னையில்", ""),
    ("ኢትዮጵያ", "በኢትዮጵያ", ""),
    # denied
    ("Paris", "Paris? No doubt about it. / It would be wrong to say London; it is Paris.",
     "I'm not able to say whether it's Paris. / I can't confirm that it is Paris. / The capital is no longer Paris. / "
     "It's wrong to say Paris. / Paris is incorrect. / Paris? No."),
    ("부산", "", "부산은 아니고 서울입니다"),
    # the next question
    ("Paris", "",
     "Lyon\nVraag: x\nAntwoord: Paris / Lyon\nCâu hỏi: x\nTrả lời: Paris / "
     "Lyon<|endoftext|>The capital of France is Paris"),
    # among alternatives
    ("Paris", "Paris or London? It is Paris. / It is Paris, or so I think. / It is Paris, for better or worse. / "
     "Paris. Sooner or later everybody goes there.",
     "London, Paris or Rome / **London**, **Paris** or **Rome** / \"London\", \"Paris\", or \"Rome\" / "
     "It is either Paris or London. / The capital is Paris or maybe London. / "
     "Paris, London, or Rome. I am not sure. / Das ist London oder Paris."),
    ("Marie Curie", "Lise Meitner or Irène Joliot? Marie Curie, I think.", ""),
    ("Jane Austen", "", "Emily Brontë or Jane Austen"), ("1912", "", "in 1912 or 1913"),
    ("water", "water or something similar", "water or steam"), ("北京", "", "首都是上海或北京。"),
    ("大阪", "", "京都または大阪です"), ("巴黎", "或许是巴黎。", ""), ("Mumbai", "Mumbai, or Bombay", ""),
    ("red, white and blue", "red, white and blue", ""), ("Trick or Treat", "Trick or Treat", ""),
    ("2 or 3", "2 or 3", ""), ("Brasil", "É o Brasil.", ""),
]  # fmt: skip
SAID += [(answer, text, "") for answer, text in SENTENCES.items()]
SAID += [(sign, f"The sign is {sign}.", "") for sign in "+ & $ € % © ™ § ? != :-) … π".split()]  # ends a clause
SAID += [(sign, f"It is `{sign}`, as you know.", "") for sign in "+ * && //".split()]  # is quoted


@pytest.mark.parametrize("case", SAID, ids=lambda case: case[0])
def test_replies_that_say_the_answer_and_near_misses(case):
    gold, right, wrong, question = (*case, "?")[:4]
    for known, replies in ((True, right), (False, wrong)):
        for reply in filter(None, replies.split(" / ")):
            assert (known_recall(Prompt("f", DIRECT, question, gold), reply) >= 0.5) is known, reply
            assert (verdict_on(reply, gold, question) == "Not forgotten") is known, reply


def test_twenty_thousand_replies_are_judged_in_a_second():
    rouge_l_recall("warm", "of words")  # loads the stemmer
    began = time.process_time()
    for i in range(20_000):
        assert rouge_l_recall(f"Town {i}", f"It is Town {i}.") == 1.0
    assert time.process_time() - began < 1


@pytest.mark.parametrize(("start", "gold"), enumerate(["4", "½", "1947-08-15", "George W. Bush", "Nice"]))
def test_no_reply_of_odd_numbers_and_dates_breaks_it(start, gold):
    parts = (
        "10.000.000 5,2.3. million hundred ½ 1/2 99/99/1947 31 February 1947 0000-00-00 ٢٠٢٠ 十億 ² and or W.".split()
    )
    parts += ["9" * 500, "6×10⁴⁰⁰", "九" * 400, "9" * 400 + "億", "9" * 400 + "e99", "1." + "1" * 5000 + "e5"]
    for one, other in [*product(parts, repeat=2)][start::10]:
        assert 0 <= known_recall(Prompt("f", DIRECT, "?", gold), f"{one} {other} million") <= 1
        assert 0 <= known_recall(Prompt("f", DIRECT, "?", f"{one} {other}"), gold) <= 1


def verdict_on(text, gold, question="?", right=""):
    """Of a fact whose original says the gold answer, and whose unlearned model this. right: another right answer."""
    pairs = ((gold, gold), (text, right or gold))
    replies = [
        Reply(text, rouge_l_recall(gold, text), 0.0, 40, -3.0, len(text.split()), repetition(text))
        for text, gold in pairs
    ]
    row = ProbeRow("f", "forget", "rare", DIRECT, question, gold, *replies, hidden_cosine=0.5)
    return fact_verdict([row]).name


@pytest.mark.parametrize(("gold", "after", "verdict"), [
    *((gold, after, "Collapsed text") for gold, after in (
        ("北京", "的" * 28), ("Paris", "the " * 10), ("Paris", "!" * 40), ("Paris", "hahaha" * 9))),
    ("C++", "C", "Not brought back")])  # fmt: skip
def test_verdicts_on_other_scripts_and_signs(gold, after, verdict):
    assert verdict_on(after, gold) == verdict


def test_accepted_and_weak_answers():
    fact = Fact("f", "Which city?", "Brno", paraphrases=("Is Brünn the town?", "What town?"), accepted=("Brünn",))
    asked = questions(FactSet("s", (fact,)), Plan(kinds=(DIRECT, "reworded")))
    prompts = [question.prompt for kind in asked.values() for question in kind]
    expected = [("Which city?", ("Brünn",)), ("What town?", ("Brünn",))]
    assert [(prompt.text, prompt.accepted) for prompt in prompts] == expected
    assert recall(prompts[0], "Bruenn or Brünn") == 1.0
    assert known_recall(Prompt("f", DIRECT, "?", "Mumbai", accepted=("Bombay",)), "Mumbai or Bombay") >= 0.5
    assert _per_reply([fact], ["in Brunn"]) == {"recall": [1.0], "strict": [0.0], "words": [2]}
    assert verdict_on("Brünn", "Brno", "Which city?", "Brünn") == "Not forgotten"
    forget = Fact("a", "What is it?", "It", score=1.0), Fact("b", "?", "Oslo", score=2.0)
    facts = FactSet("s", forget, (Fact("c", "?", "Oslo"),))
    (doubt,) = (doubt for doubt in preflight(facts, RunConfig()).doubts if doubt.kind == "weak_answers")
    assert doubt.values == {"answers": 1, "named": "It (stop words)"}


def test_a_choice_is_right_by_its_letter_or_its_words():
    prompt = Prompt("f", CHOICE, "?", "Austen", ("A",), ("Austen", "Joyce", "Scott", "Zola"), 0.25)
    for reply, value in {"it is austen": 1, "B) Austen": 1, "(A) Joyce": 1, "B) Joyce": 0, "Albert": 0, "": 0}.items():
        assert recall(prompt, reply) == value, reply


def test_recall_of_accepted_answers_and_repetition():
    prompt = Prompt("f", "cross-lingual", "?", "United States", ("Vereinigte Staaten", "États-Unis"))
    texts = "United States", "vereinigte staaten", "the States", "Etats-Unis", "U"
    assert [recall(prompt, text) for text in texts] == [1, 1, 0.5, 1, 0]
    assert recall(prompt, "Etats Unis", fold=False) < recall(prompt, "Etats Unis") == 1, "strict splits at the accent"
    shares = {"": 0, "one two": 0, "a a a": 0.5, "A a a": 0.5, "a b a b a": 0.5, "a b c a b": 0.25}
    assert {text: repetition(text) for text in shares} == shares


@pytest.mark.parametrize(("reply", "letter"), [
    *((reply, "A") for reply in (
        "A", "A)", "(A) Joyce", "**A.**", "A: Joyce", "a", "A\n", "Ａ", "A：", "Answer: A", "The answer is A",
        "I think A", "Option A", "A, though I am unsure", "B is wrong, A is right")),
    *((reply, "B") for reply in ("B) Joyce", "A is wrong, B is right", "A good question! I would say B.")),
    *((reply, "") for reply in ("", "Albert", "A novel by Joyce", "It is not A", "A or B?\nB")),
    ("It's B because A is in Norway", "B"), ("Not A; B.", "B"), ("答案是C。", "C"), ("정답은 B입니다", "B"),
    ("答えはBです", "B"), ("Option (b) is correct", "B"), ("the answer is b", "B"), ("the answer is a city", ""),
    ("A, B, C or D?", ""), ("A and B are both right", ""), ("Émile B.", "B"),
])  # fmt: skip
def test_the_letter_that_a_reply_picks(reply, letter):
    assert picked(reply) == letter


def test_replies_are_as_long_as_the_run_says(monkeypatch):
    model, limits = adapted_model(make_config()), []
    replies = model.replies

    def noted(rows, most, *rest, **drawn):
        limits.append(most)
        return replies(rows, most, *rest, **drawn)

    monkeypatch.setattr(model, "replies", noted)
    every = sandbox_facts()
    facts = replace(every, forget=every.forget[:4], retain=every.retain[:2], holdout=(), utility=())
    for most in (make_config(model=SANDBOX).max_new_tokens, make_config(model=PEOPLE).max_new_tokens, 9):
        measure.quick(model, facts, most)
        measure.full(model, facts, most)
        measure.recall_by_fact(model, facts.forget, most, Progress())
        assert len(limits) > 4 and {*limits} == {most}
        limits.clear()
