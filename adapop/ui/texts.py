"""Words that several modules of the page show. What one module shows stands in it."""

from adapop.remark.runs import TOO_OPTIMISTIC

PRESET_NAMES = {
    "paper": "As in the paper",
    "authors": "As its own authors recommend",
    "tuned": "Tuned: the best of 40 trials here",
    "as-released": "As AdaPop's public code does",
    "gentle": "Gentle: α₀ = 1",
    "stress": "Stress the controller",
    "alpha-fixed": "Control: α fixed",
    "shuffled": "Control: scores shuffled",
    "inverted": "Control: scores inverted",
    "beta-0.1": "Control: β = 0.1 for all",
    "beta-1": "Control: β = 1 for all",
    "beta-mean": "Control: the mean β for all",
}
FIELD_HELP = {
    "measure_per_tier": "Empty: 24 on a CPU (72 without scores), all on a GPU.",
    "keep": (
        "best: of the epochs that keep 95% of the retain set, the one after which the model "
        f"answers the fewest facts, asked in other words. It is {TOO_OPTIMISTIC}"
    ),
    "patience": (
        "If the best epoch is kept, training stops after this many epochs in a row without a "
        "better one; 0 trains all epochs."
    ),
    "asking": "After examples in plain text many models answer directly; in chat they talk first.",
    "answers": (
        "The answer is scored either right after the question, or at its place in the model's own "
        "reply."
    ),
    "unknown": "The model cannot forget what it never knew.",
    "start": (
        "sft: the model is first fine-tuned on the forget set and the retain set, for "
        "start_epochs epochs (5). The result is kept and reused."
    ),
}
NO_FACTS = "There are no usable facts. Pick a set on Facts, or correct the upload."
SAYS_NOTHING = "(says nothing)"
ANSWERS_RECORDED = "Recorded by probing"
DIRECT_FORM, AS_TRAINED = "The trained question", "as trained"
# the same of a pair: what a model was trained on that was made elsewhere, nobody here knows
DIRECT_OF_PAIR, ASKED_DIRECTLY = "The question itself", "asked directly"
ITS_RESULT = "Its result"
NEVER_KNEW = "Never knew"  # the column of the oracle
COMPARE_CHART_EMPTY = "appears when a run is done"
RUN_YOURSELF = "Run it yourself"
SET_RESTORED = (
    "Below is the set that you used here last. Its file was not kept: upload it again to choose "
    "other columns or other facts to retain."
)
