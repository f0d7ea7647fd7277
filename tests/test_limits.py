from pathlib import Path

import pytest

from adapop.errors import ConfigError, LimitError
from adapop.limits import (
    EPOCHS,
    FACTS,
    HOURS,
    LIMITS,
    PROMPT,
    RUNS_EACH,
    is_public,
    keep_bytes,
    keep_seconds,
    max_facts,
)
from adapop.ui.page import launch

ROOT = Path(__file__).resolve().parents[1]


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("ADAPOP_PUBLIC", "SPACE_ID", *(limit.name for limit in LIMITS)):
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
    for limit in LIMITS:
        assert limit.value() == (limit.public if expected else limit.local)


def test_public_is_0_or_1(monkeypatch):
    for text in ("true", "yes", "on", "false", " 1", "2", "01"):
        monkeypatch.setenv("ADAPOP_PUBLIC", text)
        with pytest.raises(ConfigError, match="ADAPOP_PUBLIC is"):
            is_public()


def test_limits_are_tighter_in_public_and_all_told():
    assert len({limit.name for limit in LIMITS}) == len(LIMITS)
    for limit in LIMITS:
        assert limit.public is not None
        assert limit.local is None or limit.public <= limit.local
    text = (ROOT / "assets/docs/space.md").read_text(encoding="utf-8")
    rows = ["| set it with | the most | local | public |", "|---|---|---|---|"]
    for limit in LIMITS:
        local, public = ("none" if value is None else f"{value:,}" for value in (limit.local, limit.public))
        rows.append(f"| `{limit.name}` | {limit.what} | {local} | {public} |")
    table = "\n".join(rows)
    assert table in text, f"the table is now:\n{table}"


def test_a_limit_is_a_number_above_0_which_may_be_ones_own_and_refuses_by_its_name(monkeypatch):
    for limit in LIMITS:
        for text in ("0", "-1", "inf", "nan", "1e999", "1.5.2", "many"):
            monkeypatch.setenv(limit.name, text)
            with pytest.raises(ConfigError, match=f"{limit.name} is"):
                limit.value()
        with pytest.raises(ConfigError, match=limit.name):
            launch()
        monkeypatch.delenv(limit.name)
    PROMPT.check(400)
    RUNS_EACH.check(10**6)
    with pytest.raises(LimitError, match=r"100,000 characters .* at most 400 here \(ADAPOP_MAX_PROMPT\)"):
        PROMPT.check(100_000)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    with pytest.raises(LimitError, match="a machine of your own"):
        EPOCHS.check(11)
    monkeypatch.setenv(FACTS.name, "7")
    monkeypatch.setenv(HOURS.name, "0.5")
    assert (max_facts(), keep_seconds(), keep_bytes()) == (7, 1800, 1e10)
    monkeypatch.setenv(FACTS.name, "1.5")
    with pytest.raises(ConfigError, match="whole number"):
        max_facts()
