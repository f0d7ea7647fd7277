"""Every colour of the style sheet can be seen on what it stands on, light and dark (WCAG 2.2: 4.5 : 1 for text, 3 : 1
for marks), and the colours that meet in one picture are told apart, also by readers who see fewer of them."""

import re
from itertools import combinations

import numpy as np
import pytest

from adapop.paths import ASSETS
from adapop.report.figures import look
from adapop.ui.page import THEME

GROUNDS = ("body-background-fill", "background-fill-secondary", "block-background-fill")
TEXT = (
    "body-text-color", "body-text-color-subdued", "block-title-text-color", "block-label-text-color",
    "block-info-text-color", "link-text-color", "alarm-text", "kept-text", "unlearned-text",
)  # fmt: skip
MARKS = ("tier-rare", "tier-middle", "tier-popular", "original", "unlearned", "alarm", "kept", "accent")
STYLE = (ASSETS / "style.css").read_text(encoding="utf-8")
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


def variables(*blocks: str) -> dict[str, str]:
    """The variables of blocks of CSS, a later one over an earlier."""
    return dict(pair for block in blocks for pair in re.findall(r"--([\w-]+):\s*([^;]+);", block))


def block_of(css: str, selector: str) -> str:
    return re.search(rf"^\s*{re.escape(selector)}\s*{{([^}}]*)}}", css, re.MULTILINE)[1]


THEME_CSS = THEME._get_theme_css()
LIGHT = (block_of(THEME_CSS, ":root"), block_of(STYLE, ".gradio-container"))
DARK = (LIGHT[0], block_of(THEME_CSS, ":root.dark, :root .dark"), LIGHT[1], block_of(STYLE, ".dark .gradio-container"))
TOGETHER = {
    "tiers": tuple(look.TIER_COLOR.values()),
    "tiers on dark": tuple(variables(*DARK)[f"tier-{tier}"] for tier in look.TIER_COLOR),
    "original, unlearned and kept": (look.ORIGINAL, look.UNLEARNED, look.CALM),
    "an alarm and what it is about": (look.ALARM, look.CALM, look.ORIGINAL),
}


def resolved(values: dict[str, str], name: str) -> str:
    """A variable's colour. One that the theme makes of another is made where the theme stands: what our sheet says of
    that other does not change it."""
    ours = variables(STYLE)
    value = values[name].strip()
    while value.startswith("var("):
        assert value[6:-1] not in ours, f"{name} keeps the theme's {value[6:-1]}: set it, too"
        value = values[value[6:-1]].strip()
    return {"white": "#ffffff", "black": "#000000"}.get(value, value)


def linear(color: str) -> np.ndarray:
    parts = np.array([int(color[at : at + 2], 16) / 255 for at in (1, 3, 5)])
    return np.where(parts <= 0.04045, parts / 12.92, ((parts + 0.055) / 1.055) ** 2.4)


def ratio(one: str, other: str) -> float:
    low, high = sorted(np.dot((0.2126, 0.7152, 0.0722), linear(color)) for color in (one, other))
    return (high + 0.05) / (low + 0.05)


@pytest.mark.parametrize("scheme", [LIGHT, DARK], ids=["light", "dark"])
def test_what_is_to_be_seen_can_be_seen(scheme):
    values = variables(*scheme)
    least = dict.fromkeys(TEXT, 4.5) | dict.fromkeys(MARKS, 3.0)
    required = {(name, ground): least[name] for name in least for ground in GROUNDS}
    required["input-placeholder-color", "input-background-fill"] = 4.5
    required["button-primary-text-color", "button-primary-background-fill"] = 4.5
    ratios = {pair: ratio(*(resolved(values, name) for name in pair)) for pair in required}
    assert {pair: round(value, 2) for pair, value in ratios.items() if value < required[pair]} == {}


def test_tiers_are_one_hue_of_three_lightnesses_and_the_pictures_have_the_page_s():
    assert ratio("#000000", "#ffffff") == pytest.approx(21), "as the standard has it"
    assert ratio("#94a3b8", "#ffffff") == pytest.approx(2.56, abs=0.01), "the grey that the page had"
    light, dark = variables(*LIGHT), variables(*DARK)
    for tier in look.TIER_COLOR:
        assert look.TIER_COLOR[tier] == light[f"tier-{tier}"]
    for colors in (light, dark):
        rare, middle, popular = (colors[f"tier-{tier}"] for tier in look.TIER_COLOR)
        assert min(ratio(rare, middle), ratio(middle, popular)) > 1.5
    drawn = [f"rgb{tuple(int(color[at : at + 2], 16) for at in (1, 3, 5))}" for color in look.TIER_COLOR.values()]
    for sheet in (STYLE, (ASSETS / "report" / "style.css").read_text(encoding="utf-8")):
        assert all(f"{way}: {color}" in sheet for color in drawn for way in ("fill", "stroke"))


def lab(color: str, vision: str) -> np.ndarray:
    """CIELAB of "#rrggbb" as it is seen."""
    xyz = np.maximum(0.0, np.dot(XYZ, np.dot(SEEN[vision], linear(color)))) / WHITE
    x, y, z = np.where(xyz > 0.008856, np.cbrt(xyz), 7.787 * xyz + 16 / 116)
    return np.array((116 * y - 16, 500 * (x - y), 200 * (y - z)))


@pytest.mark.parametrize("colors", TOGETHER.values(), ids=TOGETHER)
@pytest.mark.parametrize("vision", SEEN)
def test_colors_of_a_picture_are_told_apart(colors, vision):
    for one, other in combinations(colors, 2):
        assert np.linalg.norm(lab(one, vision) - lab(other, vision)) >= APART, (one, other)
