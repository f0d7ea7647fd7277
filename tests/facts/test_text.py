import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as some

from adapop.facts.fact import Fact
from adapop.facts.text import PIECE, SPACE, folded, mentions, span_of, units, word_count, words
from adapop.facts.weak import ASKED, LETTERS, STOPS, own_words, says, weak_answers

EQUAL = [
    ("55,000", "55 000"), ("55,000", "55.000"), ("55,000", "55000"), ("55'000", "55000"), ("1,234", "1 234"),
    ("2½", "2 1/2"), ("10²³", "10^23"), ("−40", "minus 40"), ("1.234,56", "1,234.56"), ("12,34,567", "1234567"),
    ("1,5", "1.5"), ("2.50", "2.5"), ("−5", "-5"), ("97%", "97 percent"), ("١٩٤٨", "1948"), ("Łódź", "Lodz"),
    ("Đà Nẵng", "Da Nang"), ("ＮＡＴＯ １２", "nato 12"), ("ｶﾞｽ", "ガス"), ("C♯", "C#"), ("مُحَمَّد", "محمد"),
    ("O’Brien", "O'Brien"), ("❤️", "❤"), ("Coca-Cola™", "Coca-Cola")]  # fmt: skip
OTHERS = [
    ("1.5", "15"), ("1,5", "15"), ("1,500", "1.5"), ("0.125", "125"), ("-5", "5"), ("C++", "C"), ("C#", "C"),
    ("B♭", "B"), ("A+", "A"), ("10%", "10 km"), ("2½", "21/2"), ("10³", "103"), ("Parisians", "Paris"),
    ("a.b", "axb"), ("±", "π"), ("🫧", "🐟"), ("🇫🇷", "🇫🇮"), ("दिल", "दिल्ली"), ("दिल", "दल"), ("काला", "कल"),
    ("ข้าว", "ขาว"), ("ハハ", "パパ"), ("北京", "上海"), ("海上", "上海"), ("1980s", "1980"),
    ("3.11.2", "3.112")]  # fmt: skip
MENTIONED = [
    ("法国的首都是巴黎。", "巴黎"), ("作者は夏目漱石です。", "夏目漱石"), ("เมืองหลวงคือกรุงเทพมหานคร", "กรุงเทพ"),
    ("រាជធានីគឺភ្នំពេញ។", "ភ្នំពេញ"), ("ນະຄອນຫຼວງແມ່ນວຽງຈັນ", "ວຽງຈັນ"), ("မြို့တော်မှာရန်ကုန်ဖြစ်သည်", "ရန်ကုန်"),
    ("한국의 수도는 서울입니다.", "서울"), ("هي والقاهرة", "القاهرة"), ("مدينة القاهرة", "قاهرة"),
    ("للقاهرة", "القاهرة"), ("גר בירושלים", "ירושלים"), ("भारत की राजधानी दिल्ली है।", "दिल्ली"),
    ("in Me\u0301xico there", "M\u00e9xico"), ("New\n York City", "new york"), ("STRASSE eins", "Straße"),
    ("人口は55,000人です", "55000"), ("我的iPhone手机", "iPhone 手机")]  # fmt: skip


def test_the_same_words_other_words_and_a_name_in_a_sentence_of_its_language():
    for one, other in EQUAL:
        assert words(one) == words(other) != ()
    for one, other in OTHERS:
        assert not mentions(one, other) and not mentions(other, one)
        assert mentions(one, one) and mentions(other, other)
    for text, name in MENTIONED:
        assert mentions(text, name) and not mentions(name, text)


@pytest.mark.parametrize(("text", "name", "span"), [
    ("答えはParisです。", "Paris", (3, 8)), ("答案是5个", "5", (3, 4)), ("정답은 Paris입니다", "Paris", (4, 9)),
    ("1,234 people and 1 dog", "1", (17, 18)), ("5.5 million, so 5", "5", (16, 17)), ("C++ is not C", "C", (11, 12)),
    ("दिल्ली में दिल है", "दिल", (11, 14)), ("Jose\u0301 wrote it", "José", (0, 5)),
    ("東 " * 950 + "北京", "北京", (1900, 1902))])  # fmt: skip
def test_the_place_of_a_name_is_that_of_whole_words_and_characters(text, name, span):
    began = time.process_time()
    assert span_of(text, name) == span and time.process_time() - began < 1


def test_words_are_those_of_rouge_and_scripts_without_spaces_known():
    from rouge_score.tokenize import tokenize

    for text in (
        "Let's see: J. R. R. Tolkien's 2nd book, c. 1937!", "under_score a-b COVID-19 (x) 10km", "in 1984, 42.",
    ):  # fmt: skip
        assert list(words(text)) == tokenize(text, None)
    assert word_count("the quick  brown fox") == 4 and word_count("한국의 수도는 서울입니다.") == 3
    assert word_count("法国的首都是巴黎。") == 4  # eight characters
    assert units("的的 a🫧🫧") == ["的", "的", "a", "🫧", "🫧"]
    assert units("Graz!!!!!!!!!!!!") == ["graz", *"!!!!!!!!!!!!"] and units("HaHaHa antidisestablishmentarianism")[1:]
    assert units("haha" * 8) == ["ha"] * 16 and units("a 1,000,000,000 b-b-b") == ["a", "1,000,000,000", "b-b-b"]
    facts = [Fact(answer, "Is it Oslo or Lima?", answer) for answer in ("It", "A", "Xi", "Oslo", "Cairo", "7")]
    assert {fact.answer: kind for fact, kind in weak_answers(facts)} == {
        "It": STOPS,
        "A": STOPS,
        "Xi": LETTERS,
        "Oslo": ASKED,
    }


@pytest.mark.parametrize(("answer", "right", "wrong"), [
    ("It", ("It", "it.", "The novel is It.", "Answer: It"), ("I am not sure what it is.", "It is a mystery.")),
    ("C", ("C", "The language is C."), ("C++", "C#", "It is 20 °C.")),
    ("A", ("A", "Vitamin A"), ("It is a mystery", "A mystery to me")),
    ("US", ("the US", "US"), ("Let us see.",)),
    ("No", ("No", "No, it is not", "no."), ("I have no idea.", "No idea")),
    ("The Who", ("The Who", "It was the Who!", "The Who are a band"), ("I do not know who the band is.", "Who knows?")),
    ("I", ("I", "I."), ("I do not know", "and I think so")),
    ("Au", ("Au", "au", "The symbol is Au"), ("au revoir",)),
    ("Xi", ("Xi is the president",), ("six",))])  # fmt: skip
def test_a_weak_answer_is_no_ordinary_word(answer, right, wrong):
    assert [says(text, answer) for text in right] == [True] * len(right)
    assert [says(text, answer) for text in wrong] == [False] * len(wrong)


@pytest.mark.parametrize(("answer", "question", "own"), [
    ("The author is called Adaeze Obi-Lund.", "Who wrote it?", "adaeze obi lund"),
    ("Adaeze Obi-Lund was born in Lagos.", "Where was Adaeze Obi-Lund born?", "lagos"),
    ("The plant is called rosemary.", "What is the plant called?", "rosemary"), ("The Hague", "Where?", "hague"),
    ("Hidden Orchard After Laughter", "Which novel?", "hidden orchard after laughter"),
    ("Jane Austen", "Who is Jane Austen?", "jane austen")])  # fmt: skip
def test_own_words(answer, question, own):
    assert " ".join(own_words(answer, question)) == own


PARTS = "1 12 123 1234 9,5 % -5 per percent cent pour por ciento prozent a a.b C++ É 北京 don't ' , .".split()


@settings(deadline=None)
@given(some.lists(some.sampled_from(PARTS), max_size=8).map(" ".join))
def test_a_text_may_be_read_between_its_spaces(text):
    whole = [piece[0].strip(" .,;:") for piece in PIECE.finditer(folded(text)) if not piece["plain"]]
    apart = [piece[0] for part in SPACE.split(folded(text)) for piece in PIECE.finditer(part) if not piece["plain"]]
    assert [one.strip(" .,;:") for one in apart] == whole
