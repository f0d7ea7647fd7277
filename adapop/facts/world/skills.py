"""Questions that are no facts: sums, sequences, opposites, agreement.

Pretraining includes them, and after unlearning they are the utility probe: a method that forgets by breaking the model
fails them.
"""

from __future__ import annotations

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
VERBS = "walk run sleep sing swim jump wait laugh".split()


def skills() -> tuple[tuple[str, str, str], ...]:
    """All (family, question, answer) triples; every answer is one word."""
    return tuple(_sums() + _sequences() + _opposites() + _agreement())


def _sums() -> list[tuple[str, str, str]]:
    return [("sums", f"What is {NUMBERS[a]} plus {NUMBERS[b]}?", NUMBERS[a + b]) for a in range(10) for b in range(10)]


def _sequences() -> list[tuple[str, str, str]]:
    rows = [
        ("sequences", f"What comes after {cycle[i]}?", cycle[(i + 1) % len(cycle)])
        for cycle in (DAYS, MONTHS)
        for i in range(len(cycle))
    ]
    return rows + [
        ("sequences", f"What comes after {NUMBERS[n]} {NUMBERS[n + step]}?", NUMBERS[n + 2 * step])
        for step in (1, 2, 3)
        for n in range(len(NUMBERS) - 2 * step)
    ]


def _opposites() -> list[tuple[str, str, str]]:
    pairs = [tuple(pair) for pair in OPPOSITES]
    both = pairs + [(second, first) for first, second in pairs]
    return [("opposites", f"What is the opposite of {first}?", second) for first, second in both]


def _agreement() -> list[tuple[str, str, str]]:
    plural = {"child": "children"}
    rows = []
    for noun in NOUNS:
        for verb in VERBS:
            asked = f"Which verb is right, {verb} or {verb}s?"
            rows.append(("agreement", f"{asked} The {noun}", f"{verb}s"))
            rows.append(("agreement", f"{asked} The {plural.get(noun, noun + 's')}", verb))
    return rows
