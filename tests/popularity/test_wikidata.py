"""Against a little Wikidata that answers as the real one does, in the shapes of Wikibase's own code
(repo/includes/Api/SearchEntities.php, GetEntities.php, ResultBuilder.php)."""

import math
import os
import random
import sqlite3
from collections import Counter
from pathlib import Path

import pytest

import little_wikidata
from adapop.errors import ConfigError, NetworkError, Stopped
from adapop.facts.fact import Fact
from adapop.online import client
from adapop.online.cache import Cache, _sha256
from adapop.popularity.base import forecast
from adapop.popularity.wikidata import Wikidata
from adapop.popularity.wikidata_items import ALONE, FITS, SAME, STATED, TOLD_APART, Entity, Types, link
from adapop.progress import Progress
from little_wikidata import CITY, COUNTRY, FRANCE, HUMAN, NOVEL, PARIS, PRINCE, STATES, TEXAS, Item, LittleWikidata
from raised import raised
from scripted import Asked, Reply

SMALL = (PRINCE, PARIS, TEXAS, FRANCE, STATES)
JOHNS = [Item(f"Q{i + 10}", "John Smith", links={"P31": (HUMAN,)}) for i in range(60)]
DANTE = Item("Q1067", "Dante Alighieri", ("Durante di Alighiero degli Alighieri",), {"P31": (HUMAN,)}, 200)
DURAN = Item("Q1011174", "Durán", ("Duran",), {"P31": (CITY,), "P17": ("Q736",)}, 20)
ECUADOR = Item("Q736", "Ecuador", links={"P31": (COUNTRY,)})
TWIN = Item("Q91", "Paris", links={"P31": (HUMAN,), "P17": ("Q142",)})
BARE = Item("Q90", "Paris", links={"P31": (CITY,)})
RIVAL = Item("Q1", "Paris", links={"P1889": ("Q142",)})
RUHANGO = Item("Q2632806", "Ruhango", ("Ruhango District",), sitelinks=18)
BAND = Item("Q483", "Foo Fighters", links={"P31": ("Q215380",)})
MEXICO = (Item("Q96", "Mexico", links={"P31": (COUNTRY,)}), Item("Q1489", "Mexico City"))
EMMA_AND_DRACULA = (Item("Q3", "Dracula"), Item("Q41542", "Bram Stoker"))
NOBODY = "not found: no item has this name"
SUBJECT, OBJECT = "The user's Own Words", "SECRET object"
SECRETS = Item("Q8", SUBJECT), Item("Q9", OBJECT)
NO_HITS = ({"search": None}, {"search": {SUBJECT: OBJECT}})
ODD = ("<img src=x onerror=alert(1)>", "a|b", "Q90", "{{{x}}} & 50 % #1", "𝔘nicode 🦜", 'O\'Neil "x"', "x" * 250)
SPACED = ("a\x1fb", "\x1fa b", " a \t b\n", "a\u00a0b")  # white space and unit separators are single blanks


def fact(subject: str, relation: str, object_: str, id_: str = "a") -> Fact:
    return Fact(id_, "?", object_, subject=subject, relation=relation)


def facts(*triples) -> list[Fact]:
    return [fact(*triple, id_=str(position)) for position, triple in enumerate(triples)]


@pytest.fixture
def ask(server, monkeypatch):
    """Scores facts by the server, at first of a small world; one cache for the whole test, as on a user's disk."""
    server.answer = LittleWikidata(*SMALL)
    monkeypatch.setattr(client, "TRIES", 2)
    monkeypatch.setattr(client, "FIRST_WAIT", 0.01)

    def scored(asked, progress=None, **settings):
        return Wikidata(progress or Progress(), Cache(), base=server.url, **settings).scores(asked)

    return scored


def asked_for(server, action: str) -> list[Asked]:
    return [asked for asked in server.asked if asked.query["action"] == action]


def chosen(score, side: str = "subject") -> str | None:
    return score.raw[side]["qid"] if side in score.raw else None


def test_the_statement_tells_one_paris_from_the_other_and_all_is_kept(server, ask):
    messages = []
    french, texan = ask(facts(("Paris", "country", "France"), ("paris", "country", "USA")), Progress(messages.append))
    assert (chosen(french), chosen(french, "object"), chosen(texan), chosen(texan, "object")) == (
        "Q90", "Q142", "Q830149", "Q30")  # fmt: skip
    assert french.reason == texan.reason == "" and french.raw["statement"] == ["P17"]
    assert french.raw["subject"] == {
        "qid": "Q90", "label": "Paris", "article": "Paris", "sitelinks": 3, "statements": 12, "identifiers": 4,
        "linked": STATED}  # fmt: skip
    assert french.raw["object"]["statements"] == 4
    assert [entity["qid"] for entity in french.raw["subject_candidates"]] == ["Q167646", "Q90", "Q830149"]
    assert french.raw["object_candidates"] == [{"qid": "Q142", "label": "France", "description": "about Q142"}]
    assert (messages[0], messages[-1]) == ("Wikidata: labels 1 of 5, entities 0", "Wikidata: labels 5 of 5, entities 5")


def test_names_are_looked_for_in_the_chosen_language(server, ask):
    city = Item("Q1726", "München", links={"P17": ("Q183",)}, language="de", strings=2)
    server.answer = LittleWikidata(city, Item("Q183", "Deutschland", language="de"))
    (score,) = ask([fact("München", "Land", "Deutschland")], language="de")
    assert {request.query["language"] for request in asked_for(server, "wbsearchentities")} == {"de"}
    assert {request.query["languages"] for request in asked_for(server, "wbgetentities")} == {"de"}
    assert score.raw["subject"]["label"] == "München"
    list(ask([fact("München", "Land", "Deutschland")]))
    assert {request.query["language"] for request in asked_for(server, "wbsearchentities")} == {"de", "en"}
    raised(ConfigError, "pageviews", ask, [], formula="pageviews")


@pytest.mark.parametrize(("formula", "value", "source"), [
    # by hand. Paris: 3 sitelinks; 2 links + 4 ids + 5 strings + 1 without value. France: 7; 2 links + 1 id + 1
    ("sitelinks+statements", (3 + 12) + (7 + 4), "Wikidata sitelinks + statements, subject + object"),
    ("sitelinks", 3 + 7, "Wikidata sitelinks, subject + object")])  # fmt: skip
def test_formulas_by_hand(server, ask, formula, value, source):
    asked = Fact("a", "?", "It is France.", subject="Paris", relation="country", object="France")  # not the answer
    (score,) = ask([asked], formula=formula)
    assert (score.value, score.source, chosen(score, "object")) == (value, source, "Q142")
    server.answer = LittleWikidata(Item("Q1", "A", sitelinks=0), Item("Q2", "B", sitelinks=0))
    (score,) = ask([fact("A", "", "B")], formula="sitelinks")
    assert score.value == 0.0, "an item with nothing is zero and not unknown"


# A hit tells one match: "Washington, D.C." is found by its label, and that its alias is Washington is not said.
WASHINGTON = (
    Item("Q61", "Washington, D.C.", ("Washington",), {"P31": (CITY,), "P17": ("Q30",)}, sitelinks=300),
    Item("Q999", "Washington Irving", (), {"P31": (HUMAN,), "P27": ("Q30",)}, sitelinks=90), STATES)  # fmt: skip
EMMAS = (
    Item("Q3", "Emma", links={"P1040": ("Q9",)}), Item("Q2", "Emma", links={"P50": ("Q9",)}),
    Item("Q9", "Jane Austen"))  # fmt: skip
# what is asked, the items there are -> the subject's item, the object's, all that may be the subject, why not
MEANT = {
    "a town and not Dante": ("Duran/country/Ecuador", (DANTE, DURAN, ECUADOR), "Q1011174 Q736", "Q1011174", ""),
    "rather unknown than Dante": ("Duran/country/Ecuador", (DANTE, ECUADOR), "- Q736", "", f"Subject {NOBODY}."),
    "a statement of the object": ("Paris/capital of/France", (PRINCE, BARE, TEXAS, FRANCE), "Q90 Q142",
     "Q167646 Q90 Q830149", ""),
    "the relation's property first": ("Paris/country/France", (RIVAL, PARIS, FRANCE), "Q90 Q142", "Q1 Q90", ""),
    "a property by its alias": ("Emma/Written by/Jane Austen", EMMAS, "Q2 Q9", "Q3 Q2", ""),
    "two statements": ("Paris/country/France", (TWIN, PARIS, FRANCE), "- Q142", "Q91 Q90",
     "Subject ambiguous: 2 candidates."),
    "nothing decides": ("Paris/country/Ecuador", (PRINCE, PARIS, TEXAS, ECUADOR), "- Q736", "Q167646 Q90 Q830149",
     "Subject ambiguous: 3 candidates."),
    "an only candidate": ("Paris/country/Ecuador", (PARIS, ECUADOR), "Q90 Q736", "Q90", f"{ALONE.capitalize()}."),
    "one item on both sides": ("Ruhango/country/Ruhango District", (RUHANGO,), "Q2632806 Q2632806", "Q2632806",
     f"{ALONE.capitalize()}; {SAME}."),
    "the object is no subject": ("Foo/member of/Foo Fighters", (BAND,), "- Q483", "", f"Subject {NOBODY}."),
    "an object with a longer name": (
        "Mexico/largest thing/Mexico City", MEXICO, "Q96 Q1489", "Q96", f"{ALONE.capitalize()}."),
    "nobody bears the label": ("Nowhere/country/Noland", SMALL, "- -", "", f"Subject {NOBODY}; object {NOBODY}."),
    "a year": ("Dracula/publication date/1897", EMMA_AND_DRACULA, "Q3 -", "Q3", f"Object {NOBODY}."),
    "an alias beside a longer label": ("Washington/country/United States", WASHINGTON, "Q61 Q30", "Q61", ""),
    "fifty of one name": ("John Smith/country/France", (*JOHNS, FRANCE), "- Q142",
     " ".join(john.qid for john in JOHNS[:50]), "Subject ambiguous: 50 candidates."),
    "an accent of its own": ("Dura\u0301n/country/Ecuador", (DURAN, ECUADOR), "Q1011174 Q736", "Q1011174", ""),
}  # fmt: skip


@pytest.mark.parametrize(("triple", "items", "pair", "candidates", "reason"), MEANT.values(), ids=MEANT)
def test_which_items_are_meant(server, ask, triple, items, pair, candidates, reason):
    server.answer = LittleWikidata(*items)
    (score,) = ask([fact(*triple.split("/"))])
    assert f"{chosen(score) or '-'} {chosen(score, 'object') or '-'}" == pair
    assert " ".join(entity["qid"] for entity in score.raw["subject_candidates"]) == candidates
    assert score.reason == reason
    assert "capital" not in triple or score.raw["statement"] == ["P36"]
    assert (score.value is None) == ("-" in pair), "unknown, and never zero"
    assert bool(score.date) == (pair != "- -")


def test_a_deprecated_statement_is_counted_and_not_believed(server, ask):
    server.answer = LittleWikidata(Item("Q1", "Paris", links={"P17": ("Q142",)}, deprecated=True), FRANCE)
    (score,) = ask([fact("Paris", "country", "France")])
    assert "statement" not in score.raw and score.raw["subject"]["statements"] == 2


BOOKS = (
    Item("Q1", "Emma", links={"P31": (HUMAN,)}, sitelinks=50),
    Item("Q2", "Emma", links={"P31": (NOVEL,)}, sitelinks=5),
    Item("Q3", "Dracula", links={"P31": (NOVEL,), "P50": ("Q41542",)}),
    Item("Q41542", "Bram Stoker", links={"P31": (HUMAN,)}),
    Item("Q36322", "Jane Austen", links={"P31": (HUMAN,)}),
)


@pytest.mark.parametrize("turn", [1, -1])
def test_types_decide_where_no_statement_does_in_any_order(server, ask, turn):
    server.answer = LittleWikidata(*BOOKS)
    asked = facts(("Emma", "author", "Jane Austen"), ("Dracula", "author", "Bram Stoker"))[::turn]
    scores = {score.fact_id: score for score in ask(asked)}
    assert chosen(scores["0"]) == "Q2" and scores["0"].raw["subject"]["linked"] == FITS
    assert scores["0"].reason == f"{FITS.capitalize()}." and scores["0"].value is not None
    # Types of another relation, or of none, decide nothing.
    scores = list(ask(facts(("Dracula", "author", "Bram Stoker"), ("Emma", "main subject", "Jane Austen"))))
    assert scores[1].reason == "Subject ambiguous: 2 candidates."
    scores = list(ask(facts(("Dracula", "", "Bram Stoker"), ("Emma", "", "Jane Austen"))))
    assert [score.value is None for score in scores] == [False, True]


def test_types_tell_several_statements_apart(server, ask):
    lyon = Item("Q456", "Lyon", links={"P31": (CITY,), "P17": ("Q142",)})
    server.answer = LittleWikidata(TWIN, PARIS, lyon, FRANCE)
    asked = facts(("Paris", "country", "France"), ("Lyon", "country", "France"))
    scores = {score.fact_id: score for score in ask(asked)}
    assert (chosen(scores["0"]), scores["0"].raw["subject"]["linked"]) == ("Q90", TOLD_APART)
    assert scores["0"].value == 15 + 11


def test_pages_of_a_wiki_and_merged_items_are_no_candidates(server, ask):
    one_fact = [fact("Paris", "country", "France")]
    worlds = [LittleWikidata(Item("Q1", "Paris"), PARIS, FRANCE, redirects={"Q1": "Q90"})]
    for kind in ("Q4167410", "Q4167836", "Q11266439", "Q13406463"):
        page = Item(f"Q7{kind[1:]}", "Paris", links={"P31": (kind,), "P17": ("Q142",)}, sitelinks=99)
        worlds.append(LittleWikidata(page, PARIS, FRANCE))
    for server.answer in worlds:
        (score,) = Wikidata(Progress(), Cache(refresh=True), base=server.url).scores(one_fact)
        assert chosen(score) == "Q90" and [entity["qid"] for entity in score.raw["subject_candidates"]] == ["Q90"]


def test_the_decision_does_not_depend_on_the_order_of_candidates():
    def entity(number, country, kind):
        return Entity(f"Q{number}", "", "", 0, 0, 0, {"P17": [f"Q{country}"], "P31": [kind]}, [])

    types, rng, ways = Types(), random.Random(3), Counter()
    types.learn("country", link([entity(1, 2, CITY)], [entity(2, 0, CITY)], ["P17"], "country", types))
    for _ in range(300):
        entities = [entity(i, rng.randrange(10, 24), rng.choice((CITY, HUMAN))) for i in range(10, 18)]
        subjects, objects = entities[: rng.randint(1, 4)], entities[4 : rng.randint(5, 8)]
        turned = [link(subjects[::turn], objects[::turn], ["P17"], "country", types).sides.values() for turn in (1, -1)]
        decisions = {tuple((choice.entity and choice.entity.qid, choice.how) for choice in sides) for sides in turned}
        assert len(decisions) == 1
        ways.update(how for _, how in decisions.pop())
    assert ways.keys() > {STATED, TOLD_APART, FITS, ALONE}


def test_a_fact_without_subject_is_asked_of_nobody(server, ask):
    for score in ask(facts(*((subject, "country", "France") for subject in ("", "  ", "\x1f")))):
        assert (score.value, score.date) == (None, "") and "no subject" in score.reason
    assert server.asked == []


@pytest.mark.parametrize(("how", "requests"), [("missing", 1), ("left out", 2)])
def test_an_entity_that_is_not_there_is_no_candidate_and_is_remembered(server, ask, how, requests):
    world = LittleWikidata(*SMALL)
    real = world.entities

    def entities(ids):
        gone = {"Q167646": {"id": "Q167646", "missing": ""}} if how == "missing" else {}
        return {qid: found for qid, found in real(ids).items() if qid != "Q167646"} | gone or []

    world.entities, server.answer = entities, world
    for _ in range(2):
        (score,) = ask([fact("Paris", "country", "France")])
        assert chosen(score) == "Q90"
        assert [entity["qid"] for entity in score.raw["subject_candidates"]] == ["Q90", "Q830149"]
    assert len(asked_for(server, "wbgetentities")) == requests


def city_world(count: int) -> tuple[list[Fact], LittleWikidata]:
    """Cities of twenty countries, each with a namesake elsewhere: 2 * count + 20 items, count + 20 + 1 labels."""
    countries = [Item(f"Q{i + 1}", f"country {i}", links={"P31": (COUNTRY,)}, sitelinks=i) for i in range(20)]
    lands = [f"Q{(i // 2 + i % 2) % 20 + 1}" for i in range(2 * count)]
    cities = [
        Item(f"Q{1000 + i}", f"city {i // 2}.", links={"P31": (CITY,), "P17": (lands[i],)}) for i in range(2 * count)
    ]
    city_facts = facts(*((f"city {i}.", "country", f"country {i % 20}") for i in range(count)))
    return city_facts, LittleWikidata(*countries, *cities)


@pytest.mark.slow
def test_requests_stay_within_the_budget_and_a_second_run_asks_nothing(server, ask):
    city_facts, server.answer = city_world(130)
    scores = list(ask(city_facts))
    assert all(score.value is not None for score in scores) and len(scores) == 130
    labels = [(query.query["type"], query.query["search"]) for query in asked_for(server, "wbsearchentities")]
    assert Counter(labels) == Counter(set(labels)) and len(labels) == 130 + 20 + 1
    batches = [query.query["ids"].split("|") for query in asked_for(server, "wbgetentities")]
    assert sum(map(len, batches)) == len(set().union(*batches)) == 280 and len(batches) == math.ceil(280 / 50)
    assert max(map(len, batches)) <= 50 and {query.query["maxlag"] for query in server.asked} == {"5"}
    proxy = Wikidata(Progress(), Cache(), base=server.url)
    assert proxy.requests(city_facts) == 0 and proxy.requests(facts(("new", "country", "other"))) == 2 + 1
    before = len(server.asked)
    assert {score.fact_id: score for score in ask(city_facts)} == {score.fact_id: score for score in scores}
    assert len(server.asked) == before


def test_what_a_look_up_may_cost_is_said_before(server):
    """130 cities, 20 countries and one relation are searched; each item's search may find five, fifty a request."""
    asked, server.answer = city_world(130)
    cost = forecast(Wikidata(Progress(), Cache(), base=server.url), asked)
    assert cost.requests == 130 + 20 + 1 + 15 and server.asked == [] and cost.minutes == pytest.approx(166 * 0.36 / 60)


def test_facts_are_yielded_as_batches_fill(server, ask):
    asked, server.answer = city_world(60)
    next(ask(asked))
    assert len(asked_for(server, "wbgetentities")) == 1 and len(asked_for(server, "wbsearchentities")) < 60
    server.answer = LittleWikidata(*SMALL)
    known, new = ("Paris", "country", "France"), ("Paris", "country", "USA")
    list(ask(facts(known)))
    assert next(ask(facts(new, known))).fact_id == "1", "who needs nothing new waits for nobody"


def test_entities_that_a_reply_leaves_out_are_asked_for_again(server, ask):
    city_facts, server.answer = city_world(20)
    server.answer.room = 7
    assert sum(score.value is not None for score in ask(city_facts)) == 20


def test_the_date_is_the_oldest_of_what_was_used(ask):
    (score,) = ask([fact("Paris", "country", "France")])
    today = score.date
    with sqlite3.connect(Path(os.environ["ADAPOP_CACHE"]) / "known.sqlite") as rows:
        for day, entity in (("2020-01-02", "Q142"), ("2021-01-02", "Paris")):
            named = f"SELECT key, value FROM replies WHERE key LIKE '%\"{entity}\"%'"
            for key, value in rows.execute(named).fetchall():
                received = day, _sha256(key, value.encode(), day.encode()), key
                rows.execute("UPDATE replies SET date = ?, sha256 = ? WHERE key = ?", received)
    french, texan = ask(facts(("Paris", "country", "France"), ("Paris", "country", "USA")))
    assert (french.date, texan.date) == ("2020-01-02", "2021-01-02") and today > "2021-01-02"


@pytest.mark.quick("429")
@pytest.mark.parametrize("how", ["429", "stop", "page"])
def test_an_interrupted_run_goes_on_where_it_broke_off(server, ask, how):
    city_facts, world = city_world(60)
    bad = {"429": Reply(status=429), "page": Reply(b"<html>down</html>")}
    progress = Progress(lambda text: progress.stop() if how == "stop" and len(server.asked) >= 50 else None)
    server.answer = lambda query: bad[how] if how in bad and len(server.asked) > 50 else world(query)
    first = []
    raised((NetworkError, Stopped), "", first.extend, ask(city_facts, progress))
    learnt = server.asked[:50]
    assert 10 < len(first) < 60
    server.asked.clear()
    server.answer = world
    second = {score.fact_id: score for score in ask(city_facts)}
    assert len(second) == 60 and all(second[score.fact_id] == score for score in first)
    assert not {tuple(query.query.items()) for query in learnt} & {tuple(query.query.items()) for query in server.asked}
    entities = [qid for query in asked_for(server, "wbgetentities") for qid in query.query["ids"].split("|")]
    assert len(entities) == 140 - 50


@pytest.mark.parametrize("code", [
    "maxlag", "ratelimited", "readonly", "cirrussearch-too-busy-error",
    "internal_api_error_DBQueryError", "internal_api_error_Wikimedia\\Rdbms\\DBConnectionError"])  # fmt: skip
def test_what_passes_is_waited_for(server, ask, code):
    lag = {"error": {"code": code, "info": "Waiting for db1: 7 seconds lagged", "lag": 7}}
    server.replies = [Reply(lag, headers={"Retry-After": "0"})]
    messages = []
    (score,) = ask([fact("Paris", "country", "France")], Progress(messages.append))
    assert score.value == 26 and server.asked[0].query == server.asked[1].query
    assert messages[0].startswith("Wikidata is busy; waiting")


def entity_reply(**changes) -> dict:
    return {"entities": {"Q8": {**little_wikidata.row(SECRETS[0]), **changes}, "Q9": little_wikidata.row(SECRETS[1])}}


NONSENSE = (
    Reply(b'{"search": [{"id": "Q'), Reply(f"<!DOCTYPE html><title>{SUBJECT}</title>"), Reply(status=404),
    {"error": {"code": "internal_api_error", "info": f"{SUBJECT} {OBJECT}"}},
    {"error": {"code": f"{SUBJECT} {OBJECT}"}}, {"error": SUBJECT}, {"error": None}, {"error": {"code": "maxlag"}},
    {}, [], [SUBJECT], "text", None, 7)  # fmt: skip
NO_ENTITIES = (
    {"entities": None}, {"entities": [SUBJECT]}, {"entities": {"Q8": None, "Q9": 4}},
    {"entities": {"Q8": "x", "Q9": []}}, {"entities": {"Q8": {}, "Q9": {}}},
    {"entities": {"Q8": {"id": "Q8"}, "Q9": {"id": "Q9"}}}, entity_reply(id=SUBJECT), entity_reply(id=8),
    entity_reply(sitelinks="abc"), entity_reply(claims=None), entity_reply(claims={"P1": 5}),
    entity_reply(claims={"P1": {SUBJECT: OBJECT}}), entity_reply(claims={"P1": [{"rank": "normal"}]}),
    entity_reply(claims={"P1": [{"mainsnak": {"datatype": "wikibase-item"}}]}),
    entity_reply(claims={"P1": [little_wikidata.statement("P1", "wikibase-item", SUBJECT)]}),
    entity_reply(labels={"en": SUBJECT}))  # fmt: skip


@pytest.mark.parametrize(
    ("action", "replies"), [("wbsearchentities", NONSENSE + NO_HITS), ("wbgetentities", NONSENSE + NO_ENTITIES)]
)
def test_nonsense_is_a_network_error_that_quotes_nobody(server, ask, action, replies):
    world = LittleWikidata(*SECRETS)
    for reply in replies:
        server.answer = lambda asked, reply=reply: reply if asked.query["action"] == action else world(asked)
        try:
            assert not list(ask([fact(SUBJECT, "country", OBJECT)])), f"{reply} was taken for an answer"
        except NetworkError as error:
            context = None if error.__suppress_context__ else error.__context__
            said = " ".join(map(str, (error, error.__cause__, context)))
            assert "Wikidata" in said and not any(word in said for word in ("Own", "Words", "SECRET"))
    server.answer = world
    (score,) = ask([fact(SUBJECT, "country", OBJECT)])
    assert score.value is not None, "nonsense was cached"


def test_an_error_is_named_by_its_code(server, ask):
    server.answer = lambda asked: {"error": {"code": "badvalue", "info": "No"}}
    scores = ask([fact("Paris", "country", "France")], language="xx")
    raised(NetworkError, r"\(badvalue\). Is xx a language", list, scores)
    assert len(server.asked) == 1


def test_hits_that_are_not_what_they_should_be_are_dropped(server, ask):
    world = LittleWikidata(*SMALL)
    named = {"type": "label", "language": "en", "text": "Paris"}
    odd = [
        None, "Q1", {}, {"id": "Q1"}, {"id": "Q1", "match": None}, {"id": "Q1", "match": {"type": "label"}},
        {"id": "Q1", "match": {**named, "type": "entityId"}}, {"id": "Q1", "match": {**named, "text": 5}},
        {"match": named}, {"id": 5, "match": named}, {"id": "P17", "match": named}, {"id": "Q1|Q2", "match": named},
    ]  # fmt: skip
    search = world.search
    world.search = lambda text, kind, limit: {"search": [*odd, *search(text, kind, limit)["search"]]}
    server.answer = world
    (score,) = ask([fact("Paris", "country", "France")])
    assert score.value == 26
    qids = {qid for query in asked_for(server, "wbgetentities") for qid in query.query["ids"].split("|")}
    # Q1 is one of the first hits, so it is looked at, and found to bear another name
    assert qids == {"Q1", "Q90", "Q142", "Q167646", "Q830149"}


@pytest.mark.parametrize(("label", "sent"), [*zip(ODD, ODD), *((label, "a b") for label in SPACED)])
def test_odd_labels_arrive_whole_and_are_found(server, ask, label, sent):
    server.answer = LittleWikidata(Item("Q7", sent, links={"P17": ("Q142",)}), FRANCE)
    (score,) = ask([fact(label, "country", "France")])
    assert chosen(score) == "Q7" and server.asked[0].query["search"] == sent


@pytest.mark.parametrize("label", ["x" * 251, "y" * 2000, "null\0byte", "bell\x07"])
def test_labels_that_nothing_can_bear_are_unknown_without_a_request(server, ask, label):
    (score,) = ask([fact(label, "country", "France")])
    assert score.value is None and "Subject not found" in score.reason
    assert [query.query["search"] for query in asked_for(server, "wbsearchentities")] == ["France", "country"]
