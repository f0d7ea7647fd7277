"""The endpoints that need no run: a set's scores, and the exponents computed from them. They raise
`AdaPopError`, as those of `Api`."""

from dataclasses import asdict

from adapop.popularity.base import given
from adapop.popularity.beta import regime
from adapop.popularity.calibration import AUTO, calibrated, warnings_of
from adapop.remark import sentences
from adapop.ui.api_values import GIVEN, facts_of, proxy_of, score_row, text_of


def score(
    facts: str | list[dict],
    proxy: str = "wikidata",
    language: str = "en",
    year: int | None = None,
) -> list[dict]:
    """The popularity of each fact to forget, from a source outside the model. Needs no run and
    changes nothing.

    Args:
        facts: the name of a set, or a list of rows with question and answer, and subject and
            object if known.
        proxy: "wikidata" (sitelinks and statements), "pageviews" (how often its Wikipedia
            article is read), "infinigram" (documents of a pretraining corpus that name it),
            "judge" (a language model, where one is set up), or "given" (the scores the facts
            came with).
        language: of the names, for wikidata and pageviews, such as "de".
        year: whose monthly pageviews are averaged, null for the last.

    Gives a list of {id, question, score, source, date, reason, raw}, one row per fact; score is
    at least 0, or null where it is unknown (not the same as 0), and reason then says why. A
    look-up takes seconds to minutes; results are cached, so that the same call continues after
    an error.

    Errors: bad rows, an unknown proxy, no answer.
    """
    chosen = facts_of(facts)
    if proxy == GIVEN:
        scored = given(chosen.forget).scores
    else:
        source = proxy_of(chosen, proxy, language, year)
        scored = {score.fact_id: score for score in source.scores(chosen.forget)}
    about = ({"id": fact.id, "question": fact.question} for fact in chosen.forget)
    return [row | score_row(scored.get(row["id"])) for row in about]


def beta(facts: str | list[dict], anchors: str = AUTO) -> dict:
    """The exponent beta that AdaPop would give each fact, from the score the fact came with.

    Args:
        facts: the name of a set, or a list of rows with question, answer and score.
        anchors: "auto" ("paper" for scores on Wikidata's scale, else "quantiles"), "paper",
            "quantiles" (of these scores), or two points score:beta such as "100:1.5,3000:0.1".

    Gives {a, b, low, high, crossover, warnings, facts}: beta = clip(a * score^-b, low, high);
    crossover is the score where beta is 1 (null if never); warnings are sentences; facts is a
    list of {id, question, score, beta, regime}, beta null where the score is unknown.

    Errors: bad rows, or anchors that define no curve.
    """
    chosen = facts_of(facts)
    scores = [fact.score for fact in chosen.forget if fact.score is not None]
    curve = calibrated(text_of("anchors", anchors), chosen)
    rows = []
    for fact in chosen.forget:
        exponent = None if fact.score is None else curve(fact.score)
        word = "unknown" if exponent is None else regime(exponent)
        about = {"id": fact.id, "question": fact.question}
        rows.append({**about, "score": fact.score, "beta": exponent, "regime": word})
    warnings = sentences(warnings_of(scores, curve), "program")
    return asdict(curve) | {"crossover": curve.crossover, "warnings": warnings, "facts": rows}
