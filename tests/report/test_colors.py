from itertools import combinations

import pytest

from adapop.report.figures import look

# Machado, Oliveira and Fernandes 2009, severity 1.0: what remains of linear RGB
SEEN = {
    "everybody": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868), (0.114503, 0.786281, 0.099216), (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968), (0.280085, 0.672501, 0.047413), (-0.011820, 0.042940, 0.968881),
    ),
    "tritanopia": (
        (1.255528, -0.076749, -0.178779), (-0.078411, 0.930809, 0.147602), (0.004733, 0.691367, 0.303900),
    ),
}  # fmt: skip
APART = 12.0  # Delta E 1976: 2.3 is just noticeable side by side; these are told apart across a picture
XYZ = ((0.4124564, 0.3575761, 0.1804375), (0.2126729, 0.7151522, 0.0721750), (0.0193339, 0.1191920, 0.9503041))
WHITE = (0.95047, 1.0, 1.08883)
TOGETHER = {
    "tiers": tuple(look.TIER_COLOR.values()),
    "tiers on dark": tuple(look.TIER_ON_DARK.values()),
    "original, unlearned and kept": (look.ORIGINAL, look.UNLEARNED, look.CALM),
    "an alarm and what it is about": (look.ALARM, look.CALM, look.ORIGINAL),
}


def applied(matrix, vector):
    return [sum(a * b for a, b in zip(line, vector)) for line in matrix]


def lab(color, seen):
    """CIELAB of "#rrggbb" as it is seen."""
    parts = [int(color[place : place + 2], 16) / 255 for place in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    xyz = [max(0.0, part) / white for part, white in zip(applied(XYZ, applied(SEEN[seen], linear)), WHITE)]
    x, y, z = (part ** (1 / 3) if part > 0.008856 else 7.787 * part + 16 / 116 for part in xyz)
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


@pytest.mark.parametrize("colors", TOGETHER.values(), ids=TOGETHER)
@pytest.mark.parametrize("seen", SEEN)
def test_colors_of_a_picture_are_told_apart(colors, seen):
    for one, other in combinations(colors, 2):
        distance = sum((a - b) ** 2 for a, b in zip(lab(one, seen), lab(other, seen))) ** 0.5
        assert distance >= APART, (one, other)
