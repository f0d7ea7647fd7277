"""What a public Space allows itself: the two variables of the environment, right and wrong."""

import pytest

from adapop.errors import ConfigError
from adapop.limits import LOCAL_FACTS, PUBLIC_FACTS, is_public, max_facts


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("ADAPOP_PUBLIC", "ADAPOP_MAX_FACTS", "SPACE_ID"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("space", "public", "expected"),
    [("", None, False), ("me/app", None, True), ("", "", False), ("me/app", "", True), ("me/app", "0", False),
     ("", "1", True), ("", "0", False)],
)  # fmt: skip
def test_who_is_public(monkeypatch, space, public, expected):
    monkeypatch.setenv("SPACE_ID", space)
    if public is not None:
        monkeypatch.setenv("ADAPOP_PUBLIC", public)
    assert is_public() is expected
    assert max_facts() == (PUBLIC_FACTS if expected else LOCAL_FACTS)


@pytest.mark.parametrize("text", ["true", "yes", "on", "false", " 1", "2", "01"])
def test_public_is_0_or_1(monkeypatch, text):
    monkeypatch.setenv("ADAPOP_PUBLIC", text)
    with pytest.raises(ConfigError, match="ADAPOP_PUBLIC is") as caught:
        is_public()
    assert "0 or 1" in caught.value.fix


@pytest.mark.parametrize("text", ["0", "-1", "1.5", "many"])
def test_the_most_facts_are_a_whole_number_above_0(monkeypatch, text):
    monkeypatch.setenv("ADAPOP_MAX_FACTS", text)
    with pytest.raises(ConfigError, match="ADAPOP_MAX_FACTS is"):
        max_facts()


def test_the_most_facts_of_ones_own(monkeypatch):
    monkeypatch.setenv("ADAPOP_MAX_FACTS", "7")
    assert max_facts() == 7
