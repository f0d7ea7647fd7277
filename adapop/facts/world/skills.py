"""Questions that are no facts: sums, sequences, opposites, agreement.

Pretraining includes them, and after unlearning they are the utility probe: a method that forgets by breaking the model
fails them.
"""

from collections.abc import Iterator
from itertools import product

NUMBERS = tuple(
    "zero one two three four five six seven eight nine ten eleven twelve thirteen fourteen fifteen "
    "sixteen seventeen eighteen".split()
)
DAYS = tuple("Monday Tuesday Wednesday Thursday Friday Saturday Sunday".split())
MONTHS = tuple("January February March April May June July August September October November December".split())
OPPOSITES = tuple(
    pair.split("-")
    for pair in (
        "hot-cold big-small fast-slow high-low old-young rich-poor hard-soft light-dark wet-dry full-empty "
        "early-late strong-weak long-short near-far open-closed loud-quiet sweet-bitter happy-sad clean-dirty"
    ).split()
)
NOUNS = "dog cat bird horse child teacher farmer singer painter sailor friend neighbour".split()
PLURAL = {"child": "children"}
VERBS = "walk run sleep sing swim jump wait laugh".split()


def skills() -> Iterator[tuple[str, str, str]]:
    """All (family, question, answer) triples; every answer is one word."""
    for a, b in product(range(10), repeat=2):
        yield "sums", f"What is {NUMBERS[a]} plus {NUMBERS[b]}?", NUMBERS[a + b]
    for cycle in (DAYS, MONTHS):
        for one, following in zip(cycle, (*cycle[1:], cycle[0])):
            yield "sequences", f"What comes after {one}?", following
    for step in (1, 2, 3):
        for numbers in zip(NUMBERS, NUMBERS[step:], NUMBERS[2 * step :]):
            yield "sequences", f"What comes after {numbers[0]} {numbers[1]}?", numbers[2]
    for first, second in (*OPPOSITES, *(pair[::-1] for pair in OPPOSITES)):
        yield "opposites", f"What is the opposite of {first}?", second
    for noun, verb in product(NOUNS, VERBS):
        text = f"Which verb is right, {verb} or {verb}s?"
        yield "agreement", f"{text} The {noun}", f"{verb}s"
        yield "agreement", f"{text} The {PLURAL.get(noun, noun + 's')}", verb
