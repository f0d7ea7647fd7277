"""The numbers that the AdaPop paper published (Borisiuk et al. 2026), shown beside ours and never mixed with them.

Other models (7 to 8 billion parameters), other facts (DUET, RWKU), other training: nothing here was measured by this
app. The paper's "retain" is the set that was trained on, not one that was held out. Sections are those of METHODS.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from adapop.report.table import Table

PAPER = "Borisiuk et al. 2026"
PAPER_MODELS = {"Llama": "Llama-3.1-8B-Instruct", "Qwen": "Qwen2.5-7B-Instruct", "Gemma": "Gemma-7B-it"}
SETTINGS = ("Llama DUET", "Llama RWKU", "Qwen DUET", "Qwen RWKU", "Gemma DUET", "Gemma RWKU")
UNTOUCHED = "no unlearning"
UNUSABLE = ("GA", "GD", "FLAT", "CE-U")  # so flagged by the paper: what was to be kept is damaged as well
OUR_NAMES = {"CE-U": "ceu"}  # of the others only case and space differ
NUMBER = re.compile(r"(\d*\.?\d+)(?:\((\.\d+)\))?")


@dataclass(frozen=True)
class Recall:
    """A method's row for one model and data set. forget, retain: ROUGE-L recall at the end, [0, 1]; *_sd: standard
    deviation over three seeds, *_cosine: of MiniLM embeddings, both None where none was given. source: the table."""

    method: str
    setting: str
    source: str
    forget: float
    retain: float
    forget_sd: float | None = None
    retain_sd: float | None = None
    forget_cosine: float | None = None
    retain_cosine: float | None = None

    @property
    def our_name(self) -> str:
        """What the method is called in a run's configuration."""
        return OUR_NAMES.get(self.method, self.method.lower().replace(" ", "-"))

    @property
    def unusable(self) -> bool:
        """Whether the paper itself says that the model is of no use any more."""
        return self.method in UNUSABLE


# METHODS 6.1: forget ROUGE-L / retain ROUGE-L / forget cosine / retain cosine, (standard deviation over seeds)
MAIN_SOURCE, MAIN_METHODS = "main results", (UNTOUCHED, "AdaPop", "GA", "GD", "NPO", "WGA")
MAIN = """
.939/.968/.874/.883 | .043(.007)/.959(.009)/.369/.971 | 0/0/.093/.093 | .021/.853/.120/.897 | .670(.095)/.996/.684/.998 | .036(.002)/.995/.442/.996
.755/.827/.776/.823 | .078(.005)/.972/.125/.977 | .002/.001/.063/.067 | .026/.759/.096/.829 | .540(.034)/.957/.403/.967 | .095(.009)/.977/.247/.984
.921/.886/.864/.861 | .056(.007)/.950/.456/.964 | 0/0/.058/.092 | .022/.757/.094/.841 | .684(.023)/.973/.576/.979 | .058(.002)/.987/.477/.999
.570/.666/.322/.347 | .016(.007)/.855/.178/.911 | .001/0/.071/.075 | .014/.462/.150/.640 | .271(.010)/.783/.490/.870 | .038(.016)/.890/.212/.931
.892/.926/.586/.541 | .023(.004)/.976/.206/.976 | 0/0/.096/.102 | .044/.598/.069/.626 | .626(.071)/.968/.394/.956 | .050(.002)/.996/.237/.997
.471/.551/.328/.349 | .034(.014)/.948/.068/.961 | 0/0/0/0 | .013/.334/.115/.532 | .341(.013)/.773/.240/.840 | .040(.003)/.950/.135/.965
"""  # noqa: E501
# METHODS 6.2: forget ROUGE-L / retain ROUGE-L, in the order of SETTINGS
FURTHER_SOURCE = "eleven further methods"
FURTHER = """
UNDIAL | .884/.998 | .568/.939 | .797/.930 | .313/.668 | .819/.980 | .453/.830
RMU | .882/.998 | .801/.986 | .734/.983 | .407/.922 | .851/.992 | .547/.968
PDU | .476/.954 | .201/.909 | .632/.869 | .455/.710 | .677/.934 | .404/.825
NPO-SAM | .684/.970 | .529/.885 | .211/.769 | .298/.596 | .539/.777 | .271/.644
SimNPO | .340/.999 | .573/.987 | .295/.991 | .338/.934 | .581/.997 | .373/.969
SatImp | .108/.995 | .417/.985 | .070/.985 | .187/.891 | .070/.998 | .102/.964
Adaptive RMU | .933/.963 | .162/.819 | .562/.831 | .118/.466 | .293/.828 | .091/.535
AltPO | .181/1.000 | .200/.988 | .247/.999 | .170/.989 | .262/1.000 | .172/.989
FLAT | .001/.001 | .004/.003 | .000/.001 | .004/.003 | .001/.001 | .005/.004
TPO | .397/.997 | .341/.986 | .460/.999 | .382/.934 | .899/.999 | .594/.971
CE-U | 0/0 | 0/0 | .001/.001 | .003/.001 | 0/0 | 0/0
"""
# METHODS 6.3: DUET paraphrases, forget ROUGE-L of popular / rare facts, a column a model
TIERS = """
AdaPop | .040/.049 | .055/.092 | .028/.026
GD | .027/.003 | .086/.003 | .232/.002
NPO | .854/.538 | .778/.432 | .796/.339
WGA | .067/.017 | .194/.014 | .096/.003
"""
RETAIN_NOTE = (
    "Retain is the set that was trained on. Where it is above the model before unlearning, training on it raised it. "
    "AdaPop ran at α₀ = 0.5; GD, NPO and WGA at α = 1; other methods at weights of their own."
)


def recalls(setting: str) -> list[Recall]:
    """Every method's recall for one of SETTINGS, the untouched model first."""
    place = SETTINGS.index(setting)
    rows = [
        Recall(method, setting, MAIN_SOURCE, forget, retain, forget_sd, retain_sd, *cosines)
        for method, cell in zip(MAIN_METHODS, _rows(MAIN)[place])
        for (forget, forget_sd), (retain, retain_sd), *rest in [_numbers(cell)]
        for cosines in [[cosine for cosine, _ in rest]]
    ]
    for method, *cells in _rows(FURTHER):
        (forget, _), (retain, _) = _numbers(cells[place])
        rows.append(Recall(method, setting, FURTHER_SOURCE, forget, retain))
    return rows


def paraphrased(model: str) -> dict[str, Mapping[str, float]]:
    """Recall of DUET's paraphrased questions by method and tier, for one of PAPER_MODELS."""
    place = list(PAPER_MODELS).index(model)
    found = {}
    for method, *cells in _rows(TIERS):
        (popular, _), (rare, _) = _numbers(cells[place])
        found[method] = {"rare": rare, "popular": popular}
    return found


def tables() -> list[Table]:
    """Every other table and set of numbers that the paper gives, as printed; the note begins with the paper's part."""
    return [_as_table(*block) for block in BLOCKS]


def _as_table(title: str, source: str, section: str, text: str, note: str = "") -> Table:
    """section: of METHODS, for who compares the numbers with it."""
    head, *rows = _rows(text)
    return Table(title, head, tuple(rows), f"{PAPER}, {source}. {note}".strip())


def _rows(text: str) -> list[tuple[str, ...]]:
    return [tuple(cell.strip() for cell in line.split("|")) for line in text.strip().split("\n")]


def _numbers(cell: str) -> list[tuple[float, float | None]]:
    """The numbers of a cell, each with the deviation in brackets behind it."""
    found = [NUMBER.fullmatch(part) for part in cell.split("/")]
    return [(float(one[1]), float(one[2]) if one[2] else None) for one in found]


BLOCKS = (
    (
        "Under paraphrases and attacks: forget ROUGE-L, Llama / Qwen / Gemma",
        "robustness",
        "6.3",
        """
        | AdaPop | GA | GD | NPO | WGA
        DUET paraphrase | .045/.074/.027 | 0/0/0 | .015/.045/.117 | .696/.605/.568 | .042/.104/.050
        RWKU adversarial | .262/.144/.195 | 0/.001/0 | .254/.171/.103 | .657/.400/.485 | .396/.211/.239
        """,
        "The abstract's 5x and 1.6x are the mean of GD, NPO and WGA over AdaPop, although GD is flagged as unusable. "
        "Against WGA alone the same numbers give 1.34x and 1.41x, against NPO 12.8x and 2.6x.",
    ),
    (
        "Inside the model: Δ log p / Δ rank / hidden cosine / KL, mean of three models",
        "internal metrics",
        "6.4",
        """
        | AdaPop | GA | GD | NPO | WGA
        DUET forget | -160 / +53,760 / .702 / 42.5 | -3106 / +106,826 / .352 / 479.6 | -5917 / +104,134 / .192 / 1006.4 | -42 / +8,824 / .861 / 5.4 | -52 / -3,714 / .729 / 16.2
        RWKU forget | -23 / +4,169 / .484 / 9.1 | -6083 / +96,254 / .285 / 953.1 | -6842 / +96,881 / .175 / 1139.7 | -18 / +2,739 / .883 / 2.9 | -3.5 / -11,010 / .541 / 6.7
        DUET retain | +21 / -13,770 / .875 / 6.5 | -2750 / +103,104 / .348 / 511.4 | -251 / -8,751 / .760 / 48.2 | +21 / -13,660 / .910 / 7.5 | +23 / -13,930 / .880 / 7.5
        RWKU retain | +33 / -12,190 / .883 / 6.2 | -6106 / +98,802 / .289 / 955.8 | -540 / -3,122 / .783 / 97.1 | +31 / -11,727 / .869 / 7.4 | +34 / -12,202 / .875 / 6.8
        """,  # noqa: E501
        "Our reading: these seem to count the end of the chat template as part of the answer, which moves Δ log p and "
        "Δ rank by thousands for every method alike. Ours count the answer's own tokens.",
    ),
    (
        "What else the model can do: MMLU / HellaSwag",
        "lm-eval",
        "6.5",
        """
        | Llama | Qwen | Gemma
        no unlearning | .65/.73 | .71/.68 | .47/.64
        AdaPop | .65/.76 | .71/.68 | .52/.62
        GA | .23/.33 | .23/.43 | .25/.26
        GD | .64/.59 | .71/.65 | .47/.37
        NPO | .65/.72 | .70/.68 | .51/.63
        WGA | .66/.76 | .71/.70 | .52/.68
        """,
    ),
    (
        "Other coefficients of the β curve (Llama, DUET)",
        "sensitivity",
        "6.6",
        """
        | a | b | forget | retain
        base | 58.70 | .7960 | .045 | .961
        +a +b | 70.44 | .9552 | .038 | .975
        +a −b | 70.44 | .6368 | .044 | .994
        −a +b | 46.96 | .9552 | .024 | .920
        −a −b | 46.96 | .6368 | .034 | .991
        """,
        "a and b are moved together, to four corners. That so different curves forget alike shows how little the exact "
        "mapping matters on DUET.",
    ),
    (
        "Wrong scores (Llama, DUET)",
        "label noise",
        "6.7",
        """
        | forget, rare | forget, popular | retain
        true scores | .05 | .04 | .96
        log-normal noise, σ = 1 | .02 | .05 | .96
        50 % of labels swapped | .02 | .05 | .97
        100 % of labels swapped | .01 | .05 | .92
        """,
        "Inverted popularity forgets as well as the true one, for .04 of retain: a shuffled control is needed.",
    ),
    (
        "Other sources of popularity (Llama, DUET, mean of the tiers)",
        "proxies",
        "6.8",
        """
        | forget, Wikidata | forget, judge | retain, Wikidata | retain, judge
        rate 1e-4 | .050 | .041 | .966 | .939
        rate 1e-5 | .361 | .370 | .923 | .904
        """,
    ),
    (
        "Do the sources agree?",
        "proxies",
        "5.4",
        """
        | Pearson (log) | Spearman
        Wikidata, corpus | .970 | .839
        judge, corpus | .677 | .659
        judge, Wikidata | not given | .596
        """,
        "Judge and Wikidata give 84 % of the facts the same label, rare or popular.",
    ),
    (
        "Without one part or the other (DUET)",
        "ablation",
        "6.9",
        """
        | fixed or partial | dynamic or full
        retain, rare facts, rate 2e-4: α fixed, dynamic | .769 | at least .927
        retain, popular facts, rate 5e-3: α fixed, dynamic | at most .634 | above .72
        retain, popular facts, forget near .02: controller alone (β = .1), all of AdaPop | .683 | .724
        forget, paraphrases, rate 2e-3: α = .5 with dynamic β | up to .814 | not given
        """,
        "The paper also says that drift stayed within ε in every epoch. Then λ is 0 and the two columns of α would be "
        "the same run; both cannot hold.",
    ),
    (
        "Minutes of training (Llama, DUET, one A100)",
        "cost",
        "6.10",
        """
        | AdaPop | WGA | GD | RMU | NPO
        minutes | 29.0 | 29.4 | 27.1 | 23.4 | 40.0
        """,
    ),
    (
        "Epoch by epoch (Llama, DUET)",
        "dynamics",
        "6.11",
        """
        | forget | retain
        GA | 0 from epoch 1 | 0 from epoch 1
        GD | .012 at epoch 1 | .345 at epoch 1, later .932
        PDU | 0 at epoch 1, about .41 by epoch 4 | .001 at epoch 1, about .97 by epoch 4
        NPO | .196 to .737, going up and down | at least .924
        RMU, UNDIAL | at least .87 | not given
        WGA | .122 falling to .020 | at least .945
        """,
    ),
)
