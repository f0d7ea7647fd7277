"""Wikipedia's page views as a proxy, from replies as Wikimedia's documentation shows them."""

import logging
from datetime import date

import pytest

from adapop.errors import ConfigError, NetworkError, Stopped
from adapop.facts.fact import Fact
from adapop.online import client
from adapop.online.cache import Cache
from adapop.popularity.pageviews import PageViews
from adapop.popularity.wikidata import NAMELESS
from adapop.popularity.wikidata_items import ALONE
from adapop.progress import Progress
from little_wikidata import CITY, COUNTRY, FRANCE, PARIS, PRINCE, STATES, TEXAS, Item, LittleWikidata
from raised import raised
from scripted import Reply

START = "/api/rest_v1/metrics/pageviews/per-article/en.wikipedia/all-access/user/"
MONTHS = [f"2023{month:02}0100" for month in range(1, 13)]
PARIS_FACT = Fact("a", "Where is Paris?", "France", "Paris", "country", "France")
HOSTILE = "<img src=x onerror=alert(1)>"
SMALL = (PRINCE, PARIS, TEXAS, FRANCE, STATES)


def reply(*views: int) -> dict:
    """https://doc.wikimedia.org/generated-data-platform/aqs/analytics-api: one item a month, oldest first."""
    about = {"project": "en.wikipedia", "article": "Paris", "granularity": "monthly", "access": "all-access"}
    rows = zip(MONTHS, views)
    return {"items": [{**about, "timestamp": time, "agent": "user", "views": count} for time, count in rows]}


def nothing() -> Reply:
    problem = {
        "status": 404, "type": "about:blank", "title": "Not Found", "detail": "The date(s) you used are valid, ...",
    }  # fmt: skip
    return Reply(problem, status=404)


class Wikimedia:
    """A little Wikidata, and views by article as it stands in the address."""

    def __init__(self, *items: Item, **views: object) -> None:
        self.wikidata, self.views = LittleWikidata(*items), views

    def __call__(self, request):
        if request.path == "/w/api.php":
            return self.wikidata(request)
        assert request.path.startswith("/api/rest_v1/metrics/pageviews/per-article/"), request.path
        return self.views.get(request.path.split("/")[-4], nothing())


@pytest.fixture
def ask(server, monkeypatch):
    monkeypatch.setattr(client, "TRIES", 2)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)

    def scored(*facts, progress=None, year=2023, **settings):
        places = {"base": server.url, "wikidata": server.url}
        return list(PageViews(progress or Progress(), Cache(), year=year, **places, **settings).scores(facts))

    return scored


def counted(server) -> list[str]:
    return [request.path for request in server.asked if request.path != "/w/api.php"]


def test_the_mean_of_the_months_of_the_article_that_the_subject_means(server, ask, caplog):
    caplog.set_level(logging.DEBUG)
    server.answer = Wikimedia(*SMALL, Paris=reply(*range(100, 1300, 100)))
    (score,) = ask(PARIS_FACT)
    assert (score.fact_id, score.value, score.reason) == ("a", 650.0, "")
    assert "2023, en.wikipedia, subject" in score.source
    assert score.date == date.today().isoformat() and counted(server) == [f"{START}Paris/monthly/2023010100/2023123100"]
    assert score.raw["subject"]["qid"] == "Q90" and score.raw["subject"]["article"] == "Paris"
    assert (score.raw["article"], score.raw["months"]) == ("Paris", [*range(100, 1300, 100)])
    assert server.asked[-1].headers["user-agent"].startswith("AdaPopExplorer/")
    before = len(server.asked)
    assert ask(PARIS_FACT) == [score] and len(server.asked) == before, "a second look-up asks nothing"
    # The article is the item's, not the label's, and no log has the user's words.
    texan = Item("Q830149", "Paris", links={"P17": ("Q30",)}, article="Paris, Texas")
    server.answer = Wikimedia(texan, STATES, **{"Paris%2C_Texas": reply(*[10] * 12)})
    anew = PageViews(Progress(), Cache(refresh=True), year=2023, base=server.url, wikidata=server.url)
    (score,) = anew.scores([Fact("a", "?", "USA", "Paris", "country")])
    assert (score.value, score.raw["article"]) == (10.0, "Paris, Texas") and "Paris" not in caplog.text
    progress = Progress()
    progress.stop()
    raised(Stopped, "", ask, Fact("b", "?", "USA", "Lyon", "country"), progress=progress)


@pytest.mark.parametrize(("title", "place"), [
    ("AC/DC", "AC%2FDC"), ("Who's Afraid?", "Who%27s_Afraid%3F"), ("../../..//x", "..%2F..%2F..%2F%2Fx"),
    ("a&b=c;d%2F@host:1", "A%26b%3Dc%3Bd%252F%40host%3A1"), ("http://127.0.0.1/", "Http%3A%2F%2F127.0.0.1%2F"),
    ("Łódź 東京", "%C5%81%C3%B3d%C5%BA_%E6%9D%B1%E4%BA%AC")])  # fmt: skip
def test_a_title_is_one_step_of_the_address_whatever_is_in_it(server, ask, title, place):
    server.answer = Wikimedia(FRANCE, **{place: reply(5)})
    (score,) = ask(Fact("a", "?", "France", title, "country"))
    assert counted(server) == [f"{START}{place}/monthly/2023010100/2023123100"] and score.value == 5
    assert "of this title" in score.reason and "1 of 12 months" in score.reason


@pytest.mark.parametrize("title", [".", "..", HOSTILE, "a#b", "[x]", "a|b", "x" * 256, "bell\x07"])
def test_what_can_be_no_title_is_asked_of_nobody(server, ask, title):
    server.answer = Wikimedia(FRANCE)
    (score,) = ask(Fact("a", "?", "France", title, "country"))
    assert (score.value, counted(server)) == (None, []) and "neither an item" in score.reason
    dots = Item("Q8", "Paris", links={"P17": ("Q142",)}, article="..")
    server.answer = Wikimedia(dots, FRANCE)
    assert ask(PARIS_FACT)[0].value is None and counted(server) == []


def test_no_count_is_unknown_and_never_zero(server, ask):
    server.answer = Wikimedia(*SMALL)
    (score,) = ask(PARIS_FACT)
    assert (score.value, score.raw["months"]) == (None, [])
    assert " in 2023" in score.reason
    server.answer = Wikimedia(*SMALL, Paris=reply(1, 2))
    assert ask(PARIS_FACT)[0].value is None, "it was remembered"
    assert len(counted(server)) == 1
    (score,) = ask(PARIS_FACT, year=2022)
    assert (score.value, score.reason) == (1.5, "Counted in 2 of 12 months.")
    server.answer = Wikimedia(*SMALL, Paris=reply(*[0] * 12))
    assert ask(PARIS_FACT, year=2021)[0].value == 0.0


def test_what_the_subject_means_may_be_unknown(server, ask):
    server.answer = Wikimedia(PRINCE, TEXAS, Item("Q736", "Ecuador", links={"P31": (COUNTRY,)}))
    rivals, nameless = ask(Fact("a", "?", "Ecuador", "Paris", "country"), Fact("b", "?", "Ecuador"))[::-1]
    assert (rivals.value, nameless.value, counted(server)) == (None, None, [])
    assert rivals.reason == "Subject ambiguous: 2 candidates."
    assert [row["qid"] for row in rivals.raw["subject_candidates"]] == ["Q167646", "Q830149"]
    assert nameless.reason == NAMELESS
    server.answer = Wikimedia(PARIS, Paris=reply(*[7] * 12))
    (score,) = ask(Fact("a", "?", "1889", "paris", "tower since"))  # nobody knows the object, which does no harm
    assert (score.value, score.reason) == (7.0, f"Subject: {ALONE}.")


def test_the_language_chooses_names_item_and_wikipedia(server, ask):
    server.answer = Wikimedia(PARIS, FRANCE)
    (score,) = ask(PARIS_FACT, language="de")
    assert {request.query["language"] for request in server.asked if request.query.get("search")} == {"de"}
    assert score.value is None and "no article" in score.reason
    munich = Item("Q1726", "München", links={"P31": (CITY,)}, language="zh-min-nan", article="München (Bavaria)")
    place = "M%C3%BCnchen_%28Bavaria%29"
    server.answer = Wikimedia(munich, **{place: reply(*[3] * 12)})
    (score,) = ask(Fact("a", "?", "?", "München"), language="zh-min-nan")
    assert counted(server) == [f"{START.replace('en.', 'zh-min-nan.')}{place}/monthly/2023010100/2023123100"]
    assert score.value == 3.0


def test_what_is_no_language_or_no_whole_year_is_refused(server, ask):
    for language in ("", "EN", "de_AT", "en&x=1", "en.evil.org/x?", "en_US", "../..", "x" * 40, "e", HOSTILE):
        raised(ConfigError, "is not a language code", ask, PARIS_FACT, language=language)
    for year in (2015, date.today().year, 0, -1, 99999):
        raised(ConfigError, "is not a whole year", ask, PARIS_FACT, year=year)
    assert server.asked == [] and f"in {date.today().year - 1}," in PageViews(Progress(), Cache()).source


@pytest.mark.parametrize("strange", [
    {}, [], None, "x", {"items": None}, {"items": [None]}, {"items": [{}]}, {"items": [{"views": "5"}]},
    {"items": [{"views": -1}]}, {"items": [{"views": True}]}, {"items": [{"views": 1.5}]},
    {"items": [{"views": 1}] * 13}, Reply(b'{"items": ['), Reply("<!DOCTYPE html>"), Reply({}, status=403),
    Reply({}, status=400), Reply({}, status=503), Reply(status=302, headers={"Location": "http://127.0.0.1:1/"}),
])  # fmt: skip
def test_strange_answers_are_errors_and_not_remembered(server, ask, strange):
    server.answer = Wikimedia(*SMALL, Paris=strange)
    assert "Paris" not in str(raised(NetworkError, "Wikimedia", ask, PARIS_FACT))
    server.answer = Wikimedia(*SMALL, Paris=reply(*[4] * 12))
    assert ask(PARIS_FACT)[0].value == 4.0
