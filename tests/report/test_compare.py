import csv
from dataclasses import replace

import pandas as pd
import pytest

import duet_rows
from adapop.config.methods import METHODS
from adapop.errors import RunError
from adapop.facts.fact import TIERS, Fact, FactSet
from adapop.probes.intervals import Interval, apart, difference, wilson
from adapop.probes.matrix import leak_matrix
from adapop.probes.prompts import DIRECT, REWORDED
from adapop.remark import Remark
from adapop.report import figures, published
from adapop.report.comparison import (
    FORGET,
    INSIDE,
    KEEP,
    RECALL,
    TOP2,
    comparison,
    replies_table,
    settings_of,
    table_rows,
    write_table,
)
from adapop.report.contestants import KNEW_NOTHING, OTHER_FACTS, OVER_FACTS, contestants
from adapop.report.figures.outcomes import ATTACKED, PANELS
from adapop.report.page import rendered
from adapop.report.record import described, read_record
from adapop.runs.examples import example
from adapop.runs.weights import Weights
from adapop.training.events import Measured
from adapop.training.frames import Frame, Scores
from raised import raised
from records import ADAPOP, COUNT, FACTS, WGA, measured, probed, record, reply, row

SHUFFLED = record(preset="shuffled", after=(0.1, 0.75, 0.9, 0.6))
GA = record("ga", after=(0.0, 0.0, 0.0, 0.0, 0.1))


def test_intervals_are_the_textbook_s():
    share = wilson(0.3, 100)
    assert (share.mean, round(share.low, 4), round(share.high, 4)) == (0.3, 0.2189, 0.3958)
    none, every = wilson(0.0, 10), wilson(1.0, 10)
    assert (none.low, round(none.high, 4)) == (0.0, 0.2775), "nobody of ten is not nobody at all"
    assert (round(every.low, 4), every.high) == (0.7225, 1.0)
    # Newcombe 1998, method 10, example (a): 56/70 and 48/80.
    excess = difference(wilson(56 / 70, 70), wilson(48 / 80, 80))
    assert (round(excess.mean, 4), round(excess.low, 4), round(excess.high, 4)) == (0.2, 0.0524, 0.3339)
    assert not apart(Interval(0.1, 0.0, 0.2), Interval(0.3, 0.2, 0.4))
    assert apart(Interval(0.1, 0.0, 0.2), Interval(0.3, 0.21, 0.4))
    assert apart(Interval(0.3, 0.21, 0.4), Interval(0.1, 0.0, 0.2))


def test_seeds_are_one_contestant_with_a_range_over_seeds_and_what_was_not_measured_is_not_zero():
    seeds = [record("wga", after=(0.2, popular, 1.0, 0.9), seed=seed) for seed, popular in enumerate((0.6, 0.5, 0.7))]
    first, second = contestants([ADAPOP, *seeds])
    assert (first.name, second.name) == ("1 AdaPop", "2 WGA, 3 seeds")
    assert second.recall("forget", DIRECT, "popular") == Interval(pytest.approx(0.6), 0.5, 0.7)
    assert second.lead(DIRECT) == Interval(pytest.approx(0.4), pytest.approx(0.3), pytest.approx(0.5))
    assert (first.over, second.over) == ("facts", "seeds")
    assert first.recall("forget", DIRECT, "rare") == wilson(0.2, COUNT)
    again = contestants([WGA, WGA, record("wga", after=(0.2, 0.6, 1.0, 0.9), seed=1)])
    assert [len(one.records) for one in again] == [2, 1]
    told = comparison([WGA, record("wga", after=(0.2, 0.5, 1.0, 0.9), seed=1)])
    assert "Mean over 2 seeds" in told.intervals[0] and ("seed", "0, 1") not in told.settings.rows
    for change in ({"learning_rate": 0.5}, {"facts": replace(FACTS, retain=())}):
        assert len(contestants([WGA, record("wga", after=(0.2, 0.6, 1.0, 0.9), seed=1, **change)])) == 2
    best = record("wga", after=(0.2, 0.6, 1.0, 0.9), keep="best", measure="every-epoch")
    assert len(comparison([WGA, best]).contestants) == 2
    assert described(best.config).endswith(", best epoch")
    (one,) = contestants([WGA, record("wga", seed=1)])
    assert (one.name, one.label, one.over) == ("1 WGA, 1 of 2 seeds", "1 WGA", "facts")
    assert one.recall("forget", DIRECT, "all") == wilson(0.4, 2 * COUNT)
    (one,) = contestants([record()])
    assert one.recall("forget", DIRECT, "all") is one.lead(DIRECT) is one.value("forget", "kl") is None
    assert first.value("retain", "kl") is None


def test_table_has_every_number_also_as_csv(tmp_path):
    results = comparison([record(after=(1 / 3, 0.2, 0.9, 0.7)), WGA])
    cells = {name: values for table in results.results for name, *values in table.rows}
    assert [table.head for table in results.results] == [(part, "1 AdaPop", "2 WGA") for part in (FORGET, KEEP, INSIDE)]
    assert len(cells) == len(results.lines), "every number has a row, and a name of its own"
    for title, of_wga in (
        ("still answered, asked in other words: rare", "20.0%\n11 to 33%"),
        ("the gap, popular minus rare, asked in other words (nearer to 0 is better)", "+40.0 points\n+21 to +55"),
        ("held-out facts (never trained on), asked as trained", "90%\n79 to 96%"),
        ("Δ log p, forget set (lower is better)", "-1.00"),  # no range: a run keeps means of it only
    ):
        assert cells[title][1] == of_wga
    assert {line.form for line in results.lines} == {DIRECT, REWORDED}, "nobody probed"
    assert results.intervals == (OVER_FACTS,)
    with open(write_table(results, tmp_path / "t.csv"), encoding="utf-8-sig", newline="") as file:
        rows = list(csv.DictReader(file))
    assert len(rows) == len(list(table_rows(results)))
    (rare_row,) = [one for one in rows if (one["contestant"], one["form"], one["tier"]) == ("1", "direct", "rare")]
    assert (float(rare_row["value"]), float(rare_row["low"])) == (1 / 3, wilson(1 / 3, COUNT).low)
    assert (rare_row["better"], rare_row["range_over"], rare_row["method"]) == ("lower", "facts", "adapop")
    inner = next(one for one in rows if one["metric"] == "KL")
    assert (inner["low"], inner["range_over"]) == ("", "")
    raised(RunError, "cannot be written", write_table, results, tmp_path / "nowhere" / "t.csv")


def test_a_number_of_one_run_ranges_over_facts_though_others_have_seeds():
    rows = probed("a", 1.0, 1.0, "role playing"), probed("a", 1.0, reply(0.0, near=True), REWORDED)
    told = comparison([replace(WGA, matrix=leak_matrix(rows)), record("wga", after=(0.2, 0.6, 1.0, 0.9), seed=1)])
    rare = {(one["form"], one["metric"]): one for one in table_rows(told) if one["tier"] == "rare"}
    found = {place: (one["seeds"], one["range_over"]) for place, one in rare.items()}
    assert found[ATTACKED, RECALL] == (2, "facts") and found[REWORDED, TOP2] == (1, "facts")
    assert found[REWORDED, RECALL] == (2, "seeds")


def test_models_of_one_name_are_told_apart_by_a_place_that_is_never_shown():
    one, other = (
        replace(record("wga", after=(0.2, 0.6, 1.0, 0.9), seed=seed, model="model"), place=f"/{seed}/model",
                weights=Weights("", f"{seed}" * 64)) for seed in (0, 1)
    )  # fmt: skip
    told = comparison([one, other])
    assert [len(each.records) for each in told.contestants] == [1, 1] and len(told.outcomes) == 2, "no one original"
    assert ("model (hash)", "0" * 12, "1" * 12) in told.settings.rows
    assert "/0/" not in rendered([one, other]) + str([*table_rows(told)])
    assert len(comparison([one, replace(other, place=one.place)]).contestants) == 1


def with_rows(one, rows):
    return replace(one, events=(one.events[0], replace(one.after, rows=tuple(rows)), one.events[2]))


def test_runs_are_compared_in_a_form_that_all_were_asked_in():
    bare = with_rows(ADAPOP, [row for row in ADAPOP.after.rows if (row["group"], row["form"]) != ("forget", REWORDED)])
    results = comparison([bare, WGA])
    assert (results.form_words, results.outcomes[1].holdout.mean) == (PANELS[DIRECT], 0.7)
    assert comparison([WGA]).form_words == PANELS[REWORDED]


def test_the_original_is_drawn_where_all_runs_began_with_it():
    assert [one.name for one in comparison([ADAPOP, WGA]).outcomes] == ["original", "AdaPop", "WGA"]
    people = record("wga", after=(0.2, 0.6, 1.0, 0.9), model="people")
    assert [one.name for one in comparison([ADAPOP, people]).outcomes] == ["AdaPop", "WGA"]


def on_unknown_facts(method, preset="paper"):
    """A run whose model answered none of its facts before training."""
    run = record(method, preset, after=(0.0, 0.0, 1.0, 1.0), facts=replace(FACTS, name="unknown", retain=()))
    start, end, done = run.events
    rows = tuple(one | ({"recall": 0.0} if one["group"] == "forget" else {}) for one in start.rows)
    return replace(run, events=(replace(start, rows=rows), end, done))


def test_runs_whose_model_never_knew_the_facts_or_on_other_facts_are_grey_and_never_crowned():
    unknown = [on_unknown_facts("adapop"), on_unknown_facts("adapop", "shuffled"), on_unknown_facts("wga")]
    other = record("npo", after=(0.0, 0.0, 1.0, 1.0), facts=replace(FACTS, retain=()))
    told = comparison([*unknown, ADAPOP, WGA, other])
    assert [one.apart for one in told.contestants] == [KNEW_NOTHING] * 3 + ["", "", OTHER_FACTS]
    assert told.outcomes[0].original, "those that compare have one original"
    assert {one.mark for one in figures.pareto_front(told.outcomes)} == {"4", "5"}
    unknowing, elsewhere = [remark.values for remark in told.warnings if remark.kind == "apart"]
    assert unknowing == {"names": "1 AdaPop, 2 AdaPop, shuffled, 3 WGA", "reason": KNEW_NOTHING}
    assert elsewhere == {"names": "6 NPO", "reason": OTHER_FACTS}
    drawn = figures.compare_runs(told.outcomes).data
    grey = [color == figures.look.FAINT for color in drawn[-1].marker.color]
    assert grey == [False] * 3 + [True] * 4, "below the others"
    assert Remark("no_contest") in comparison(unknown).warnings


def test_a_collapsed_run_is_out_of_the_contest_and_one_that_forgot_nothing_is_none():
    idle = [record(method, after=(1.0, 1.0, 1.0, 1.0)) for method in ("adapop", "wga")]
    assert Remark("no_contest") in comparison(idle).warnings
    results = comparison([ADAPOP, GA])
    names = "2 Gradient ascent (only 0% of the retain set is still answered)"
    assert Remark("collapsed", {"names": names}) in results.warnings
    assert [one.mark for one in figures.pareto_front(results.outcomes)] == ["1"]
    assert results.outcomes[2].collapsed
    useless = record("ga", after=(0.5, 0.5, 0.9, 0.9, 0.3))
    assert "only 30% of" in comparison([ADAPOP, useless]).outcomes[2].collapsed


def test_what_may_not_be_concluded_is_said():
    fewer = replace(FACTS, forget=(Fact("z", "?", "!", score=1.0),))
    assert comparison([ADAPOP, record("wga", facts=fewer)]).warnings == (
        Remark("apart", {"names": "2 WGA", "reason": OTHER_FACTS}), Remark("no_control"),
        Remark("unequal_weights", {"alphas": "0.5, 1"}), Remark("unmeasured", {"names": "2 WGA"}))  # fmt: skip
    assert comparison([ADAPOP, SHUFFLED]).warnings == ()
    bare = Measured(run="r", epoch=5, full=True, rows=(row("forget", DIRECT, "all", 0.3),))
    assert comparison([ADAPOP, replace(WGA, events=(*WGA.events[:1], bare))]).form_words == PANELS[DIRECT]
    rows = {name: values for name, *values in settings_of(contestants([ADAPOP, WGA])).rows}
    assert (rows["method"], rows["alpha0"], "seed" in rows) == (["adapop", "wga"], ["0.5", "1"], False)


def test_published_numbers_are_those_of_the_paper():
    """Spot checks over every block, each against the paper."""
    recalls = {(one.method, one.setting): one for name in published.SETTINGS for one in published.recalls(name)}
    assert len(recalls) == 17 * 6
    ours = recalls["AdaPop", "Llama DUET"]
    assert (ours.forget, ours.forget_sd, ours.retain, ours.retain_sd) == (0.043, 0.007, 0.959, 0.009)
    assert (ours.forget_cosine, ours.retain_cosine) == (0.369, 0.971)
    wga = recalls["WGA", "Qwen RWKU"]
    assert (wga.forget, wga.forget_sd, wga.retain, wga.retain_sd) == (0.038, 0.016, 0.89, 0.005)
    assert recalls[published.UNTOUCHED, "Gemma RWKU"].retain == 0.551
    assert (recalls["TPO", "Gemma DUET"].forget, recalls["UNDIAL", "Llama RWKU"].retain) == (0.899, 0.939)
    assert recalls["CE-U", "Qwen RWKU"].unusable
    assert published.paraphrased("Qwen")["WGA"] == {"rare": 0.014, "popular": 0.194}
    assert all(one.source and 0 <= one.forget <= 1 and 0 <= one.retain <= 1 for one in recalls.values())
    spread = [one for one in recalls.values() if one.forget_sd is not None and one.retain_sd is not None]
    main = [one for one in recalls.values() if one.source == published.MAIN_SOURCE]
    assert spread == [one for one in main if one.method != published.UNTOUCHED], "each ± that is printed"
    gd, npo = recalls["GD", "Gemma DUET"], recalls["NPO", "Llama DUET"]
    assert (gd.forget_sd, gd.retain_sd, npo.retain_sd) == (0.007, 0.024, 0.005)
    tables = published.tables()
    assert len(tables) == 12
    for table in tables:
        assert table.note.startswith(f"{published.PAPER}, "), table.title
    minutes = next(table for table in tables if table.title.startswith("Minutes of training (Llama, DUET, one A100)"))
    assert minutes.rows[0][1:] == ("29.0", "29.4", "27.1", "23.4", "40.0")
    discordant = next(table for table in tables if table.title.startswith("Where Wikidata and the judge disagree"))
    assert [row[2:4] for row in discordant.rows][::5] == [("2,113", "30"), ("165", "4,000")]
    rows = {row[0]: [list(map(float, cell.split("/"))) for cell in row[1:]] for row in tables[0].rows}
    adapop, _, gd, npo, wga = (sum(cell) / 3 for cell in rows["DUET paraphrase"])
    assert round((gd + npo + wga) / 3 / adapop, 2) == 5.12
    assert (round(wga / adapop, 2), round(npo / adapop, 1)) == (1.34, 12.8)
    theirs = {one.our_name for one in published.recalls("Llama DUET")}
    assert len({*METHODS} & theirs) == 16


@duet_rows.real_rows
def test_the_table_of_duets_scores_is_counted_in_its_rows():
    rows = pd.read_json(duet_rows.DUET, lines=True)
    table = next(table for table in published.tables() if table.title.startswith("Scores of DUET's forget set"))
    for tier, *cells in table.rows:
        scores = rows.loc[(rows.tier == tier) | (tier == "all"), "pop_sum"]
        expected = [len(scores), *scores.quantile([0, 0.25, 0.5, 0.75, 1])]
        assert [float(cell.replace(",", "")) for cell in cells] == expected
    assert not rows.pop_sum.between(141, 2364, inclusive="neither").any()


def test_a_model_that_never_knew_did_not_collapse():
    """A stranger's model stands at 0 on questions that were made for another: before, too."""
    ignorant = record("ga", after=(0.5, 0.5, 0.9, 0.9, 0.0))
    start, end, done = ignorant.events
    rows = tuple(one | ({"recall": 0.0} if one["group"] == "utility" else {}) for one in start.rows)
    told = comparison([ADAPOP, replace(ignorant, events=(replace(start, rows=rows), end, done))])
    assert told.outcomes[2].collapsed == "" and comparison([ADAPOP, ignorant]).outcomes[2].collapsed


def test_one_question_of_each_tier_in_one_table():
    """Of the shipped runs, from their frames: the original answers, and the runs differ."""
    records = [read_record(example(name)) for name in ("adapop", "shuffled", "wga", "redirect")]
    table = comparison(records).replies
    head, (right, original, *replies) = table.head, table.rows
    assert [name[-len(tier) - 2 :] for name, tier in zip(head[1:], TIERS)] == [f"({tier})" for tier in TIERS]
    assert right[1:] == original[1:] and [reply[0] for reply in replies] == [one.label for one in contestants(records)]
    for place in (1, 2, 3):
        answers = [reply[place] for reply in replies]
        assert right[place] in answers and {*answers} != {right[place]}
        fact = next(fact for fact in records[0].facts.forget if head[place].startswith(fact.question))
        probed = {row.fact_id: row.unlearned.text for row in records[0].rows if row.kind == DIRECT}
        assert probed.get(fact.id, answers[0]) == answers[0], "what it was recorded to say, it says"
    assert comparison([ADAPOP, WGA]).replies is None


def test_runs_on_several_models_stand_beneath_each_other_method_by_method():
    other = record(after=(0.4, 0.6, 0.8, 0.75), model="some/model")
    results = comparison([ADAPOP, WGA, other])
    rows = [line[:3] + line[-1:] for line in results.models.rows]
    assert rows == [
        ("AdaPop", "sandbox", "20%", "1"), ("AdaPop", "some/model", "40%", "3"), ("WGA", "sandbox", "20%", "2"),
    ]  # fmt: skip
    assert results.models.as_html() in rendered([ADAPOP, WGA, other]) and comparison([ADAPOP, WGA]).models is None


def test_the_replies_beside_each_other_are_of_the_kept_epoch_and_of_one_original():
    facts = FactSet("mine", (Fact("a", "Who?", "He", score=70.0),))
    frames = tuple(
        Frame(epoch, float(epoch), {"forget": Scores((0.5,), (1,))}, (reply,))
        for epoch, reply in enumerate(("He.", "He.", "She."))
    )
    run = replace(record(after=(0.2, 0.2, 0.9, 0.7), facts=facts, keep="best"), frames=frames)
    ended = replace(run, events=(run.events[0], measured(1, 0.2, 0.2, 0.9, 0.7), run.events[-1]))
    last = replace(run, events=(run.events[0], measured(2, 0.2, 0.2, 0.9, 0.7), run.events[-1]))
    for one, words in ((ended, "He."), (last, "She.")):
        assert replies_table(contestants([one, one])).rows[-1][1] == words
    assert replies_table(contestants([run])) is None, "no frame is of the end"
    for changes in ({"model": "people"}, {"start": "sft"}, {"revision": "0" * 40}):
        other = replace(last, config=replace(last.config, **changes))
        assert replies_table(contestants([last, other])) is None, "another original"
