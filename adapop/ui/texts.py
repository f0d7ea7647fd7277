"""Words that several modules of the page show. What one module shows stands in it."""

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
    "measure_per_tier": "Empty: 24 on a processor, all on a GPU.",
    "keep": (
        "best: of the epochs that keep 95% of the retain set, the one that answers the fewest "
        "facts in other words. It is chosen by questions that are also reported, so its numbers "
        "are flattering."
    ),
    "patience": "How many in a row, where the best is kept; 0 trains all epochs.",
    "asking": "Asked as text after examples, many models answer at once; in chat they talk first.",
    "answers": (
        "An answer may stand right behind the question, or in the middle of the model's own reply."
    ),
    "unknown": "What was never known cannot be forgotten.",
    "start": (
        "sft: first taught the questions to forget and to retain, for as many epochs as "
        "start_epochs says (5); kept and reused."
    ),
}
NO_FACTS = "There are no usable facts. Pick a set on Facts, or correct the upload."
SAYS_NOTHING = "(says nothing)"
ANSWERS_RECORDED = "Recorded by probing"
DIRECT_FORM = "The trained question"
ITS_RESULT = "Its result"
COMPARE_CHART_EMPTY = "appears when a run is done"
RUN_YOURSELF = "Run it yourself"
SET_RESTORED = (
    "Below is the set that you used here last. Its file was not kept: upload it again to choose "
    "other columns or other facts to retain."
)
