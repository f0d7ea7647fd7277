"""Records of runs, made by hand, as reports and comparisons read them."""

from adapop import Fact, FactSet, make_config
from adapop.probes.matrix import LeakMatrix
from adapop.probes.prompts import DIRECT, REWORDED, ProbeRow, Reply
from adapop.probes.recall import repetition, rouge_l_recall
from adapop.probes.verdict import fact_verdict
from adapop.report.record import Record
from adapop.report.tables import INTERNAL
from adapop.training.events import Measured, RunDone, RunFailed

FACTS = FactSet("mine", (Fact("a", "Who?", "He", score=70.0),), (Fact("b", "Where?", "There"),))
COUNT = 50
SENTENCES = {  # answers, each in a sentence of its language
    "巴黎": "法国的首都是巴黎。", "奥斯陆": "我认为挪威的首都是奥斯陆，对吗？", "内罗毕": "肯尼亚首都为内罗毕市。",
    "パリ": "フランスの首都はパリです。", "東京": "日本の首都は東京だと思います。", "夏目漱石": "作者は夏目漱石です。",
    "القاهرة": "عاصمة مصر هي مدينة القاهرة.", "باريس": "إنها باريس، وهي في فرنسا.", "عمّان": "أظنها لعمان."}  # fmt: skip


def row(group, form, tier, recall, facts=COUNT, **metrics):
    unknown = dict.fromkeys(INTERNAL)
    place = {"group": group, "form": form, "tier": tier, "facts": facts}
    return {**place, "recall": recall, "words": 1.0, **unknown, **metrics}


def reply(recall, words=1, repetition=0.0, cosine=None, logprob=-1.0, near=None, relation_rank=None, rank=1):
    return Reply("text", recall, recall, rank, logprob, words, repetition, cosine, near, relation_rank)


def probed(fact, before, after, kind=DIRECT, group="forget", tier="rare", score=70.0, **more):
    """What a probing finds of a fact. before, after: replies, or their recall alone."""
    sides = (side if isinstance(side, Reply) else reply(side) for side in (before, after))
    return ProbeRow(fact, group, tier, kind, "?", "gold", *sides, score=score, **more)


def measured(epoch, rare, popular, retain, holdout, utility=1.0):
    """A full measurement: popular and rare facts, and the rest, in both forms alike."""
    inside = {"delta_logprob": -1.0, "delta_rank": 2.0, "hidden_cosine": 0.5, "kl": 0.1}
    rows = []
    for form in (DIRECT, REWORDED):
        extra = inside if form == DIRECT else {}
        rows += [row("forget", form, "rare", rare), row("forget", form, "popular", popular)]
        rows.append(row("forget", form, "all", (rare + popular) / 2, 2 * COUNT, **extra))
        rows.append(row("holdout", form, "all", holdout, **extra))
    rows += [row("retain", DIRECT, "all", retain), row("utility", DIRECT, "all", utility)]
    return Measured(run="r", epoch=epoch, rows=tuple(rows), full=True)


def record(method="adapop", preset="paper", after=None, facts=FACTS, **changes):
    """A run as a report reads it. after: rare, popular, retain, holdout and perhaps utility; None for no end."""
    events = [RunFailed(run="r", message="It broke.")]
    if after is not None:
        events = [measured(0, 1.0, 1.0, 1.0, 1.0), measured(5, *after), RunDone(run="r", epoch=5, seconds=1.0)]
    config = make_config(method, preset, facts=facts.name, **changes)
    nothing = LeakMatrix((), (), ())
    return Record("done", config, facts, {}, None, tuple(events), (), nothing, {}, {})


ADAPOP = record(after=(0.2, 0.2, 0.9, 0.7))
WGA = record("wga", after=(0.2, 0.6, 1.0, 0.9))


def verdict_on(text, gold, question="?", right=""):
    """Of a fact whose original says the gold answer, and whose unlearned model this. right: another right answer."""
    pairs = ((gold, gold), (text, right or gold))
    replies = [
        Reply(text, rouge_l_recall(gold, text), 0.0, 40, -3.0, len(text.split()), repetition(text))
        for text, gold in pairs
    ]
    row = ProbeRow("f", "forget", "rare", DIRECT, question, gold, *replies, hidden_cosine=0.5)
    return fact_verdict([row]).name
