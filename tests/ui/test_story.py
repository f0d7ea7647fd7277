import json
import re
from dataclasses import replace
from statistics import fmean

import pytest

from adapop import METHODS, Fact, make_config
from adapop.errors import ConfigError, DataError
from adapop.paths import ASSETS
from adapop.probes.prompts import ProbeRow, Reply
from adapop.report import real
from adapop.report import recorded as results
from adapop.report.recorded import Recorded
from adapop.report.table import percent
from adapop.runs.amount import few_steps
from adapop.runs.examples import example, example_of
from adapop.runs.states import EPOCHS, NAME, planned
from adapop.service.worker import Worker
from adapop.training.frames import FIRST, Frame, Scores
from adapop.ui.parts import field
from adapop.ui.story import content, screen, words
from raised import raised
from tiny_runs import ran

RARE, POPULAR = Fact("a", "Who?", "Kubrick", "Paths", score=124.0), Fact("b", "Who?", "Kubrick", "Orange", score=1206.0)
FILE = ASSETS / NAME
LONG = "a stanza of " * 8 + "Homer"


def frames(direct: list[tuple[int, int]], reworded: list[tuple[int, int]]) -> list[Frame]:
    """A frame an epoch, from the ranks of two facts' right answers."""
    replies = ("Kubrick", "Kubrick")
    groups = [{"forget": one, "reworded": other} for one, other in zip(direct, reworded)]
    scored = [{name: Scores((1 / ranks[0], 1 / ranks[1]), ranks) for name, ranks in of.items()} for of in groups]
    return [Frame(step, float(step), scores, replies) for step, scores in enumerate(scored)]


@pytest.fixture(scope="module")
def story():
    return content.story()


def seeds(method: str, left, retained, preset: str = "paper") -> Recorded:
    """Results of a seed each: what is left of the facts to forget, the same in every tier, and what is kept."""
    tiers = [f"forget_reworded_{tier}" for tier in ("all", "rare", "popular")]
    rows = [dict.fromkeys(tiers, str(one)) | {"holdout_direct_all": str(other)} for one, other in zip(left, retained)]
    return Recorded(method, preset, tuple(rows))


def test_what_was_lost_is_told_in_order():
    recording = frames([(1, 1), (2, 1), (9, 2), (9, 9)], [(1, 1), (2, 1), (9, 1), (9, 4)])
    assert words.first_lost(recording) == 0
    late = words._lost("Orange", recording, 1)
    assert "after epoch 2; " in late and late.endswith("until epoch 3.")
    turned = frames([(1, 1), (1, 2)], [(1, 1), (1, 1)])
    assert words.first_lost(turned) == 1 and words._lost("Paths", turned, 0).startswith("Paths is still")
    recording = frames([(1, 2), (2, 2)], [(2, 2), (2, 2)])
    assert words.lost_after(recording, "reworded", 0) == 0 and words.first_lost(recording) == 1
    assert words._lost("Orange", recording, 1).startswith("Orange was never answered, asked as trained or")
    assert words.lost_after(frames([(1, 1), (2, 1), (1, 1), (3, 1)], [(1, 1)] * 4), "forget", 0) == 3
    assert words.lost_after(frames([(1, 1), (2, 1), (1, 1)], [(1, 1)] * 3), "forget", 0) is None
    assert words.first_lost(frames([(1, 1), (2, 2)], [(1, 1), (2, 2)])) is None


def test_who_does_better_is_said_only_beyond_chance(story):
    ours, shuffled = seeds("adapop", [0.46], [0.79]), seeds("adapop", [0.5], [0.8], "shuffled")
    assert re.search(r" 20% .* \(AdaPop 46%\)", words.better([ours, seeds("wga", [0.2], [0.93]), shuffled]))
    assert words.better([seeds("adapop", [0.1], [0.99]), seeds("wga", [0.2], [0.93]), shuffled]) == ""
    ours = seeds("adapop", (0.4, 0.6), (0.79, 0.81))
    for kept, said in (
        ((0.999, 1.0), "The difference in forgetting may be chance."),
        ((0.8, 0.84), "Both differences may be chance."),
    ):
        assert words.better([ours, seeds("wga", (0.39, 0.58), kept)]).endswith(said)
    scored = Recorded("adapop", "paper", seeds("wga", (0.1, 0.1), (0.99, 0.99)).rows)
    assert words.better([ours, scored]) == "", "it is a method without scores that is told of"
    near, far, clear, ours, fixed = (seeds("npo", pair, (0.9, 0.9), "tuned") for pair in (
        (0.2, 0.7), (0.1, 0.11), (0.01, 0.02), (0.6, 0.62), (0.5, 0.52)))  # fmt: skip
    assert words.tuned_better([near, clear, far, ours, fixed]).endswith(
        "Redirect and WGA answer less of the forget set in other words, and use no popularity."
    )
    assert words.tuned_better([near, near, far, ours, fixed]) == ""
    as_good = seeds("npo", (0.09, 0.12), (0.9, 0.9), "tuned")
    assert words.tuned_better([near, far, far, ours, as_good]) == "", "AdaPop at its best is as good"
    recorded_arms = results.tuned_arms(tuple(words.TUNED_ARMS))
    assert story["without"] == words.tuned_better(recorded_arms) != ""
    assert [one.method for one in recorded_arms] == ["altpo", "redirect", "wga", "adapop", "adapop"]
    redirect = next(one for one in results.tuned() if one.method == "redirect")
    assert not any(config.arguments.get(METHODS["redirect"].scored_by) for config in redirect.configs)


def test_what_is_said_of_real_models_is_the_recorded_rows_and_leads_to_a_run():
    models = {model: real.outcomes(file) for model, file in real.FILES.items()}
    table = words.on_real_models(models)
    for model, outcomes in models.items():
        by_title = {outcome.title: outcome for outcome in outcomes}
        arms, about = table["models"][model]["arms"], table["models"][model]["words"]
        assert [arm["name"] for arm in arms] == [*words.REAL_ARMS.values()]
        for title, arm in zip(words.REAL_ARMS, arms):
            for tier in ("rare", "popular"):
                share = arm["shares"][tier]
                assert share["mean"] == pytest.approx(by_title[title].share("forget", "reworded", tier))
                assert share["low"] < share["mean"] < share["high"], "with an interval over its runs"
        for rare, popular, gap in re.findall(r"leaves ([\d.]+)%.*? ([\d.]+)%.*?gap (-?[\d.]+)", about):
            assert float(popular) - float(rare) == pytest.approx(float(gap)), "what is written subtracts"
    assert "it reversed the gap, mostly by keeping rare facts" in table["models"]["Gemma 3 270M"]["words"]
    assert "3 runs of Gemma 3 270M and 5 runs of SmolLM2" in table["note"]
    assert example_of(table["run"]).state == "done"


def test_all_recordings_are_of_the_same_facts_and_every_state_is_there(story):
    count = len(story["facts"]["question"])
    assert {len(p) for p in story["hill"]["p"]} == {count} and len(story["facts"]["beta"]) == count
    for by_epoch in (one["said"] for one in story["replies"].values()):
        assert by_epoch.keys() == {"0", str(EPOCHS)} and {len(replies) for replies in by_epoch.values()} == {count}
    held = story["held"]["tier"]
    assert {len(one["by_fact"]) for one in story["states"]} == {count}
    assert {len(one["held_out"]) for one in story["states"]} == {len(held)}
    for one in story["states"]:
        drawn = fmean((ord(letter) - ord("A")) / story["letters"] for letter in one["held_out"])
        assert drawn == pytest.approx(one["holdout"]), "the second cloud is what its number counts"
    assert len(json.dumps(story)) < 350_000
    assert story["states"][0]["name"] == "original" and (FILE.stat().st_size < 2_000_000)
    there = {(one["name"], one["epochs"], one["anchors"]) for one in story["states"][1:]}
    assert there == set(planned()) and len(there) == len(story["states"]) - 1
    given, shuffled = ([card[part] for card in story["deck"]] for part in ("given", "dealt"))
    assert len(given) == 8 and sorted(given) == sorted(shuffled) == given
    assert not any(one == other for one, other in zip(given, shuffled))
    assert [story["facts"]["score"][card["fact"]] for card in story["deck"]] == given
    ours, even = (example(name).measured() for name in ("adapop", "wga"))
    retained, rare = story["costs"]
    assert percent(ours.recall("holdout")) in retained and percent(even.recall("holdout")) in retained
    assert percent(ours.recall("forget", "reworded", "rare")) in rare
    assert max(len(f"{headline} {text}".split()) for headline, text in story["steps"]) <= 60
    assert not any("{" in text for of in story["steps"] for text in of), "every number is filled in"
    assert len(story["steps"]) == len(words.SCENES) == len(story["commands"]) == len(story["from"])


def test_frames_and_a_run_of_the_curve():
    sent = field.motion(frames([(1, 1), (2, 4)], [(1, 1), (1, 3)]), (RARE, replace(POPULAR, answer="Fellini")))
    assert sent == {
        "epoch": [0.0, 1.0], "p": [[1000, 1000], [500, 250]],
        "reworded": [[1000, 1000], [1000, 333]], "said": [["Kubrick", "Kubrick"]] * 2,
        "right": [[True, False]] * 2}  # fmt: skip
    bare = Frame(8, 0.5, {"forget": Scores((0.25,), (1,))})
    nothing = {"reworded": [None], "said": [None], "right": [None]}
    assert field.motion([bare], (RARE,)) == {"epoch": [0.5], "p": [[250]]} | nothing
    config = screen.config_of([100, 0.6], [3000, 0.6])
    assert (config.beta(70.0), config.beta(3766.0), config.epochs) == (pytest.approx(0.6), pytest.approx(0.6), EPOCHS)
    assert screen.config_of([100, 1.5], [3000, 0.1]) == replace(example("adapop").config, system=config.system)
    for wrong in (None, [100], ["x", 1], [100, 0.1], [10**400, 1]):
        raised(ConfigError, "", screen.config_of, wrong, [3000, 0.6])
    assert screen.config_of([100, 1.5], [3000, 0.1], 8).epochs == 8
    for wrong in (None, 0, 11, 2.5, "8", [5]):
        raised(ConfigError, "length", screen.config_of, [100, 1.5], [3000, 0.1], wrong)


def test_facts_typed_in_the_story_become_a_run_that_can_move_them_with_rewordings():
    text = "Who wrote the book Hamlet?, Shakespeare, 3766\n\nWho wrote the book Cymbeline?; said he, Shakespeare, 70"
    config, facts = screen.own_facts(text.replace("; said he", ""), "wga")
    assert [fact.answer for fact in facts.forget] == ["Shakespeare"] * 2 and facts.holdout
    assert all(len(fact.paraphrases) >= 2 for fact in facts.forget), "the templates of the sandbox"
    assert config.method == "wga" and not few_steps(len(facts.forget), config)
    raised(ConfigError, "method", screen.own_facts, text, "npo")
    raised(DataError, "no usable fact", screen.own_facts, "only a question", "adapop")


@pytest.mark.slow
def test_a_run_on_typed_facts_gives_both_clouds():
    _, facts = screen.own_facts(
        "Who wrote the book Hamlet?, Shakespeare, 3766\nWho wrote the book Cymbeline?, Shakespeare, 70", "wga"
    )
    clouds = screen.own_clouds(
        ran(
            make_config("wga", epochs=1),
            replace(facts, utility=(), retain=facts.retain[:16], holdout=facts.holdout[:16]),
        )
    )
    before, after = clouds["states"]
    assert (len(before["by_fact"]), len(after["held_out"])) == (2, len(clouds["held"]["title"]))
    assert before["epochs"] == 0 and after["name"] == "wga" and before["left"] == 1.0


def test_a_run_that_was_deleted_is_over(tmp_path):
    live, timer = screen.progress(Worker(tmp_path), "adapop-0123456789abcdef")
    assert (live["over"], timer.active) == (True, False) and "deleted" in live["text"]


@pytest.mark.parametrize(("said", "answer", "right"), [
    ("Romeo", "Rome", False), ("It is rome, they say.", "Rome", True), ("Dvorak", "Dvořák", True),
    ("", "Rome", False), (LONG, LONG, True), (f"It is {LONG}", LONG, None), ("a stanza", LONG, False),
])  # fmt: skip
def test_a_reply_is_right_that_has_the_whole_answer_as_far_as_it_is_recorded(said, answer, right):
    frame = Frame(0, 0.0, {"forget": Scores((0.5,), (1,))}, (said[:FIRST],))
    assert field.motion([frame], (replace(RARE, answer=answer),))["right"] == [[right]]


def row(fact: Fact, kind: str, back: bool, known: bool = True) -> ProbeRow:
    """One prompt; back: whether the unlearned model answers it, known: whether the original does."""
    recalls = float(known), float(back)
    replies = [Reply("Kubrick" if told else "Fellini", told, told, 9, -5.0, 1, 0.0) for told in recalls]
    return ProbeRow(fact.id, "forget", fact.tier, kind, f"{kind}?", fact.answer, *replies)


def test_the_test_asks_about_facts_that_are_gone_when_asked_directly():
    scores = {"a": 70.0, "b": 3000.0, "c": 200.0}
    a, b, c = (Fact(name, "Who?", "Kubrick", name, "director", score=score) for name, score in scores.items())
    rows = [row(a, "direct", False), row(a, "reworded", True), row(a, "reworded", False), row(b, "direct", False)]
    rows += [row(b, "reworded", True, known=False), row(b, "role playing", True), row(c, "direct", True)]
    ((first, second),) = content.quiz([a, b, c], rows)
    assert [(one["fact"], one["outcome"]) for one in (first, second)] == [(0, 1), (1, 2)]
    ways = [(one["way"], one["right"], one["back"], one["tried"]) for one in first["shown"]]
    assert ways == [("direct", False, 0, 1), ("reworded", True, 1, 2)]
    assert [one["way"] for one in second["shown"]] == ["direct", "attack"]


def test_the_examples_show_what_the_words_say(story):
    """The headlines speak of these recordings: made again, they must still hold."""
    ends = {one["name"]: one for one in story["states"] if one["epochs"] == EPOCHS and not one["anchors"]}
    gaps = {name: end["gap"]["mean"] for name, end in ends.items()}
    assert gaps["adapop"] < gaps["shuffled"] < gaps["wga"] + 0.1
    assert gaps["wga"] > gaps["adapop"] + 0.2 and story["pair"]["first"] == 0
    assert story["pair"]["stop"] == 1 and "A Clockwork Orange is still answered." in story["pair"]["outcome"]
    assert ends["wga"]["tiers"][2] > 0.5, "many popular facts do not go"
    first, other = story["quiz"][0]
    assert first["outcome"] > 0 and not other["outcome"], "only the first comes back"
    assert [story["facts"]["tier"][one["fact"]] for one in (first, other)] == ["popular", "rare"], "which is the rule"
    entries = [entry for pair in story["quiz"] for entry in pair]
    assert {entry["outcome"] for entry in entries} >= {0, 1}
    direct = [one for entry in entries for one in entry["shown"] if one["way"] == "direct"]
    assert len(direct) == len(entries) and not any(one["right"] for one in direct), "the step says that these are wrong"
    # The scene on why: its pairs begin equally sure, and then the popular fact of most is the surer one.
    p, pairs = story["hill"]["p"], story["pairs"]
    sides = [[[frame[pair[side]] for pair in pairs] for frame in p] for side in (0, 1)]
    assert len(pairs) > 20 and len({fact for pair in pairs for fact in pair}) == 2 * len(pairs)
    tier = story["facts"]["tier"]
    assert {(tier[rare], tier[popular]) for rare, popular in pairs} == {("rare", "popular")}
    distances = [abs(rare - popular) for rare, popular in zip(sides[0][0], sides[1][0])]
    assert max(distances) <= 1000 * content.EQUALLY_SURE + 1
    for rare, popular in list(zip(*sides))[1:]:
        assert sum(more > less for less, more in zip(rare, popular)) > len(pairs) / 2 and fmean(popular) > fmean(rare)
    assert fmean(sides[1][-1]) > 3 * fmean(sides[0][-1])
    popular, rare = map(int, re.findall(r"(\d+) of", story["pairs_end"]))
    assert popular > 2 * rare, story["pairs_end"]
