"""Every sentence of the app that is not a measurement."""

from __future__ import annotations

TITLE = "AdaPop Explorer"
TAGLINE = "Unlearning that knows how famous a fact is"
INTRO = (
    "Language models learn famous facts deeper than rare ones, so unlearning erases the rare and leaves the famous. "
    "AdaPop pushes on each fact according to its popularity. **See the scores, watch a real run, then try to get the "
    "facts back.**"
)
SANDBOX_SET, OWN_SET = "The sandbox world: 256 facts, rare to famous", "My own facts (CSV, JSON, JSONL, Parquet)"
SANDBOX_ABOUT = (
    "The model here is small and ours: we chose how often its pretraining showed each fact, so popularity is known "
    "exactly and is the only thing that differs. Scores are four times that count."
)
UPLOAD_ABOUT = (
    "One fact a row, in UTF-8: `question`, `answer`, and a popularity `score` of at least 0. Optional: `id`, "
    "`subject`, `paraphrases` (separated by |), `group` (forget, retain or holdout). The sandbox model only knows "
    "its own world: download the template to see facts it can forget."
)
MISSING_ABOUT = "Some facts have no score. A missing score is never taken for zero: decide what AdaPop should do."
MISSING_CHOICES = [
    ("Do not start", "error"),
    ("Leave these facts out", "drop"),
    ("Give them β = 1, as WGA would", "uniform"),
]
PRESSURE_ABOUT = (
    "A fact's score becomes an exponent β, and each answer token is pushed with weight p^β. The push on the right "
    "answer is p^β(1 − p): it fades for every β above 0 as the fact goes, and is strongest at p = β/(1 + β). "
    "**A small β keeps pushing on a fact long after a large β has let go.**"
)
METHOD_CHOICES = [
    ("AdaPop: push by popularity", "adapop"),
    ("WGA: the same push for all", "wga"),
    ("NPO: bounded preference", "npo"),
    ("GD: plain ascent, retain held", "gd"),
    ("GA: plain ascent, nothing held", "ga"),
]
PRESET_CHOICES = [
    ("As in the paper", "paper"),
    ("Gentle: α₀ = 1", "gentle"),
    ("Stress the controller", "stress"),
    ("Control: α fixed", "alpha-fixed"),
    ("Control: scores shuffled", "shuffled"),
    ("Control: scores inverted", "inverted"),
    ("Control: β = 0.1 for all", "beta-0.1"),
    ("Control: β = 1 for all", "beta-1"),
    ("Control: the mean β for all", "beta-mean"),
]
RUN_ABOUT = "A real run on this machine. You may close the page: the run goes on, and the page finds it again."
LOSS_ABOUT = "Loss of the answer at each step: facts to forget should rise, the retained ones should not."
CONTROLLER_ABOUT = (
    "Drift δ of the retain loss against the tolerance ε (dashed). Above it, λ rises and with it the retain weight α "
    "of the next epoch. In the paper epoch 1 is the reference, so its own drift is 0 by definition."
)
RECALL_ABOUT = "Can the model still answer? Asked as trained (solid), and in other words (dotted)."
OUTCOME_ABOUT = (
    "At the end, with reworded questions. Retain facts were trained on; holdout facts never were: they show what "
    "forgetting cost the rest."
)
NO_RUN = "No run yet. Press Start on tab 3."
CHART_EMPTY, OUTCOME_EMPTY = "appears when a run starts", "appears when the run is done"
PROBE_ABOUT = (
    "Ask the original and the unlearned model the same thing. "
    "*A low score shows that these prompts failed, not that the knowledge is gone.*"
)
PROBE_EMPTY = "The answers appear here."
DIRECT_FORM = "The trained question"
OWN_FORM = "My own prompt"
MAX_PROMPT = 400
