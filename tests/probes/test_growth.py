"""What is asked of every reply and fact takes time in proportion to its length: growth is compared, not seconds."""

import time

import pytest

from adapop.facts.text import _plain_words, mentions
from adapop.objectives.alternates import _says
from adapop.probes.judge import gives_away
from adapop.probes.numerals import _patterns
from adapop.probes.recall import alike, both_in_digits

SIZES = (500, 1000, 2000, 4000)
MOST = 20  # times as long at 8 times the size; where it is quadratic, it is 64 times
REPLIES = ("It is {}.", "I think {} (1990)", "{}, a town on the coast of {}", "I do not know.", "Not {}: it is Lyon.")


def times(work) -> list[float]:
    """The least time of three at each size. work: (size, repetition) -> what is to be timed, prepared."""
    least = []
    for size in SIZES:
        taken = []
        for repetition in range(3):
            timed = work(size, repetition)
            began = time.thread_time()
            timed()
            taken.append(time.thread_time() - began)
        least.append(min(taken))
    return least


@pytest.mark.parametrize("text, name", [
    ("a ", "a "), ("a b ", "a b "), ("1,000 ", "1000 "), ("東京", "東京"), ("10% ", "10 ")])  # fmt: skip
@pytest.mark.parametrize("judge", [mentions, _says])
def test_a_name_is_looked_for_in_one_pass(judge, text, name):

    def work(size, repetition):
        texts = f"{text * size}{repetition}", f"{name * (size // 2)}end"
        return lambda: judge(*texts)

    least = times(work)
    assert not judge(f"{text * 9}", f"{name * 4}end") and judge(f"{text * 9}end", f"{name * 4}end")
    assert least[-1] < MOST * least[0], least


def test_replies_are_judged_in_time_that_grows_as_their_number_and_length():

    def many(size, repetition):
        replies = [REPLIES[i % len(REPLIES)].format(*[f"Town {i} {repetition}"] * 2) for i in range(size // 4)]
        return lambda: [gives_away("Which town?", [f"Town {i}"], reply) for i, reply in enumerate(replies)]

    def long(size, repetition):
        reply = " ".join(f"Lyon, {i} of May, or {repetition} and a.b 900-12" for i in range(size // 20))
        return lambda: gives_away("Which town?", ["900-12-3125"], reply)

    gives_away("Which town?", ["a town of words"], "words")  # loads the stemmer
    for work in (many, long):
        least = times(work)
        assert least[-1] < MOST * least[0], least


@pytest.mark.parametrize("answers, splits, looks", [
    (["Lyon"], 1, 0), (["Lyon", "Marie Curie", "a blue river"], 1, 0), (["17 towns"], 1, 1), (["1979-05-14"], 1, 1),
])  # fmt: skip
def test_a_reply_is_split_once_and_searched_for_numbers_only_where_the_answer_has_one(answers, splits, looks):
    text = "Well, two or three say that it is the first of half a hundred others, since Town{} {}came later"
    replies = [text.format(name, "again " * length) for name in "ABC" for length in (1, 10, 100)]
    caches = _plain_words, _patterns, both_in_digits, alike
    for cache in caches:
        cache.cache_clear()
    assert gives_away("Which?", answers, f"It is {answers[-1]}.")  # reads the answers and the question
    assert not gives_away("Which?", answers, text.format("D", ""))  # and what other tests left in other caches
    before = [cache.cache_info().misses for cache in caches]
    assert not any(gives_away("Which?", answers, reply) for reply in replies)
    split, searched, *_ = (cache.cache_info().misses - misses for cache, misses in zip(caches, before))
    assert (split, searched) == (splits * len(replies), looks * len(replies))
