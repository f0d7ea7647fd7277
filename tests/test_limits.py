import pytest

from adapop import limits
from adapop.errors import ConfigError, LimitError
from adapop.paths import ROOT
from adapop.ui.page import launch
from raised import raised


@pytest.fixture(autouse=True)
def bare(monkeypatch):
    for name in ("ADAPOP_PUBLIC", "SPACE_ID", *(limit.name for limit in limits.LIMITS)):
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
    assert limits.is_public() is expected
    for limit in limits.LIMITS:
        assert limit.value() == (limit.public if expected else limit.local)


def test_public_is_0_or_1(monkeypatch):
    for text in ("true", "yes", "on", "false", " 1", "2", "01"):
        monkeypatch.setenv("ADAPOP_PUBLIC", text)
        raised(ConfigError, "ADAPOP_PUBLIC is", limits.is_public)


def test_limits_are_tighter_in_public_and_all_told():
    assert len({limit.name for limit in limits.LIMITS}) == len(limits.LIMITS)
    for limit in limits.LIMITS:
        assert limit.public is not None
        assert limit.local is None or limit.public <= limit.local
    text = (ROOT / "assets/docs/space.md").read_text(encoding="utf-8")
    rows = ["| set it with | the most | local | public |", "|---|---|---|---|"]
    for limit in limits.LIMITS:
        local, public = ("none" if value is None else f"{value:,}" for value in (limit.local, limit.public))
        rows.append(f"| `{limit.name}` | {limit.what} | {local} | {public} |")
    table = "\n".join(rows)
    assert table in text, f"the table is now:\n{table}"


def test_a_limit_is_a_number_above_0_which_may_be_ones_own_and_refuses_by_its_name(monkeypatch):
    for limit in limits.LIMITS:
        for text in ("0", "-1", "inf", "nan", "1e999", "1.5.2", "many"):
            monkeypatch.setenv(limit.name, text)
            raised(ConfigError, f"{limit.name} is", limit.value)
        raised(ConfigError, limit.name, launch)
        monkeypatch.delenv(limit.name)
    limits.PROMPT.check(400)
    limits.RUNS_EACH.check(10**6)
    raised(LimitError, r"100,000 characters .*; the limit is 400 \(ADAPOP_MAX_PROMPT\)", limits.PROMPT.check, 100_000)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    raised(LimitError, "a machine of your own", limits.EPOCHS.check, 11)
    monkeypatch.setenv(limits.FACTS.name, "7")
    monkeypatch.setenv(limits.HOURS.name, "0.5")
    assert (limits.max_facts(), limits.keep_seconds(), limits.keep_bytes()) == (7, 1800, 1e10)
    monkeypatch.setenv(limits.FACTS.name, "1.5")
    raised(ConfigError, "whole number", limits.max_facts)


@pytest.mark.parametrize("port", ["abc", "", "0", "-1", "99999", "78 60"])
def test_a_port_that_is_none_is_a_sentence(monkeypatch, port):
    monkeypatch.setenv("GRADIO_SERVER_PORT", port)
    raised(ConfigError, "GRADIO_SERVER_PORT is .* 1 to 65535", limits.check_port)
    monkeypatch.setenv("GRADIO_SERVER_PORT", "7860")
    limits.check_port()
