"""Every sentence of the app that is not a measurement."""

from adapop.limits import max_facts

TITLE = "AdaPop Explorer"
TAGLINE = "Unlearning that knows how famous a fact is"
INTRO = (
    "Language models learn famous facts deeper than rare ones, so unlearning erases the rare and leaves the famous. "
    "AdaPop pushes on each fact according to its popularity. **See the scores, watch a real run, then try to get the "
    "facts back.**"
)
SOURCE_LABEL = "Facts to forget"
TOUR_OPEN, TOUR_AGAIN = "3-minute tour", "Tour again"
TOUR_GUESS = "Your guess; the last card answers it"
TOUR_SOURCE = "The tour shows two facts of its own; your set comes back afterwards"
TOUR_ASKING = "The answers appear here as soon as the tour's run is done."
OWN_SET = "My own facts (CSV, JSON, JSONL, Parquet)"
UPLOAD_ABOUT = (
    "One fact a row, in UTF-8, at most {rows:,} rows: `question`, `answer`, and a popularity `score` of at least 0. "
    "Optional: `id`, `subject`, `relation`, `paraphrases` and `alternates` (wrong answers; both separated by |), "
    "`group` (forget, retain or holdout). "
    "Use no personal data. The sandbox model only knows its own world: the template shows facts it can forget."
)
MAPPING_ABOUT = "What each field is read from. Change it if the guess is wrong; the table follows."
RETAIN_CHOICES = [
    ("The file's own, else the sandbox's", "own"),
    ("The sandbox world's", "sandbox"),
    ("Neighbours: the sandbox facts most like these", "neighbours"),
    ("A second table of mine", "upload"),
]
RETAIN_ABOUT = (
    "These are trained on, so that they survive. Some facts are always held out, to see what survives untrained."
)
PROXY_CHOICES = [
    ("Wikidata: sitelinks and statements", "wikidata"),
    ("Corpus counts: infini-gram", "infinigram"),
    ("Counts in a text of mine", "corpus"),
    ("The scores that came with the set", "given"),
]
PROXY_ABOUT = {
    "wikidata": (
        "How many Wikipedias and how many statements know the subject and the answer. **The names of the subjects, "
        "relations and answers are sent to www.wikidata.org**, one after the other; this takes about a second a new "
        "name. What is found is kept: stop and go on when you like."
    ),
    "infinigram": (
        "How often a pretraining corpus names the subject and the answer. **The names of the subjects and answers are "
        "sent to api.infini-gram.io.** Counts run over four orders of magnitude: re-anchor on tab 2."
    ),
    "corpus": (
        "How many lines of a text name the subject and the answer, as whole words. The text is counted on the machine "
        "that runs this page and sent nowhere else."
    ),
    "judge": (
        "A language model rates how common each fact is, from 0 to 10,000, three times in different orders. **The "
        "facts are sent to the judge's endpoint.** A fact that it does not rate three times stays unknown."
    ),
    "given": "Puts back the scores that the set came with.",
}
FORMULA_CHOICES = [("sitelinks + statements", "sitelinks+statements"), ("sitelinks alone", "sitelinks")]
COMBINE_CHOICES = [
    ("subject + answer", "subject+object"),
    ("subject alone", "subject"),
    ("answer alone", "object"),
    ("both together in one place", "both"),
]
TABLE_ABOUT = "Click a row to see how its score was made, or to set it by hand. β follows the anchors of tab 2."
KNOWN_ABOUT = "You cannot see forgetting of what was never known."
AGREEMENT_ABOUT = (
    "Two proxies that disagree on which facts are popular give different pressures. Look both up, then compare. "
    "*Two clusters far apart give a high Pearson by themselves: read Spearman, and the facts that disagree.*"
)
AGREEMENT_EMPTY = "Needs two different scorings of this set: look popularity up above."
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
WHAT_IF_CHOICES = [
    ("AdaPop", "given"),
    ("WGA: β = 1 for all", "wga"),
    ("Plain ascent: β = 0", "ga"),
    ("scores shuffled", "shuffled"),
    ("scores inverted", "inverted"),
    ("scores noisy (σ = 1)", "noisy"),
    ("half the labels swapped", "swapped"),
]
WHAT_IF_ABOUT = "Changes the pictures alone. A method that profits from popularity must lose something when scores lie."
CURVE_ABOUT = "Drag the two ◆ anchors, or focus one and use the arrow keys. Shaded: clipped, all facts there get one β."
PUSH_ABOUT = (
    "The same exponents, seen twice: the push on the right answer itself, and the paper's picture, the weight against "
    "WGA's."
)
PRESET_NAMES = {
    "paper": "As in the paper",
    "authors": "As its own authors recommend",
    "gentle": "Gentle: α₀ = 1",
    "stress": "Stress the controller",
    "alpha-fixed": "Control: α fixed",
    "shuffled": "Control: scores shuffled",
    "inverted": "Control: scores inverted",
    "beta-0.1": "Control: β = 0.1 for all",
    "beta-1": "Control: β = 1 for all",
    "beta-mean": "Control: the mean β for all",
}
MODE_GPU = "Runs use this machine's GPU. Nothing here is a replay."
MODE_CPU = "Runs use this machine's processor and take seconds with the sandbox. Nothing here is a replay."
SANDBOX_MODEL = "Sandbox: a million parameters, ships along"
MODEL_ABOUT = "Or the Hub id or folder of a chat model in safetensors; with a GPU it can be a real one."
MODEL_PUBLIC = "Small enough to be unlearned while you watch. Run the app yourself for other models."
PRESET_ABOUT = "AdaPop as in the paper, or one of its controls."
ADVANCED = "Advanced settings"
ADVANCED_ABOUT = "Each starts at what the preset sets; the paper's value stands beside it."
RUN_ABOUT = "A real run on this machine. You may close the page: the run goes on, and the page finds it again."
LOSS_ABOUT = (
    "Loss of the answer at each step: facts to forget, by popularity, should rise; the retained ones should not. Each "
    "point is one batch, nothing is smoothed."
)
CONTROLLER_ABOUT = (
    "Drift δ of the retain loss against the tolerance ε (dashed): above it λ rises, and with it the retain weight α of "
    "the next epoch. Epoch 1 is the reference: its drift is 0."
)
RECALL_ABOUT = (
    "Can the model still answer? Asked as trained (solid), and in other words (dotted). Between popular and rare "
    "facts lies the popularity gap."
)
OUTCOME_ABOUT = (
    "At the end, with reworded questions. Retain facts were trained on; holdout facts never were: they show what "
    "forgetting cost the rest."
)
CONTROLLER_TABLE = "Drift δ of the retain loss, and the retain weight α, by epoch; epoch 0 is before training."
LOSS_TABLE = "Mean loss of the answers of each step's batch, in nats."
RECALL_TABLE = "Share of the facts to forget that the model answers, by epoch, by popularity and form."
OUTCOME_TABLE = "Share of questions that each model answers, reworded where there are rewordings."
STRIP_TABLE = "How many facts to forget have which score, by tier."
LEAK_TABLE = "Recall of both models by form of the question and tier; n/m is not measurable."
KIND_TABLE = "Recall by form of the question, with 95 % intervals over facts."
AGREEMENT_TABLE = "Both scores, plus one, of the facts on which the proxies agree and of those on which they do not."
PUSH_TABLE = "The push on the right answer by confidence p."
RELATIVE_TABLE = "The weight against WGA's by confidence p."
CURVE_TABLE = "Facts by score, with the exponent each gets."
NO_FACTS = "There are no usable facts. Pick a set on tab 1, or mend the upload."
NO_RUN = "No run yet. Press Start on tab 3."
CHART_EMPTY, OUTCOME_EMPTY = "appears when a run starts", "appears when the run is done"
PROBE_ABOUT = (
    "Ask the original and the unlearned model the same thing. "
    "*A low score shows that these prompts failed, not that the knowledge is gone.*"
)
PROBE_EMPTY = "The answers appear here."
DIRECT_FORM = "The trained question"
OWN_FORM = "My own prompt"
LEAKS_ABOUT = (
    "Asks the chosen facts, and as many retained and held-out ones, directly, reworded and under nine attacks, and "
    "compares both models. A form that the original cannot answer either is *not measurable* (n/m), not forgotten."
)
LEAK_FACTS = "Recall of the unlearned model, fact by fact. Click a row to ask about it above."
LEAKS_EMPTY = "Nothing was probed yet: press “Probe all ways”."
RECOVERY_ABOUT = (
    "A prompt is not the only way in. Each of these has a control beside it, because guessing and training find "
    "something by themselves. The model is left as it was."
)
RECOVERY_CHOICES = [
    ("Relearning", "relearn"),
    ("Rounding the weights", "quantise"),
    ("Sampling", "sampling"),
    ("Looking through the layers", "lens"),
]
RECOVERY_DETAIL = {
    "relearn": (
        "Trains briefly on a few forgotten facts and asks for the *others*. The control trains on invented facts "
        "instead. What true facts bring back beyond that was hidden rather than erased: a lower bound, for invented "
        "ones may lift the lid as well."
    ),
    "quantise": "Rounds the merged weights to 8 and 4 bits: small changes sometimes undo a small change.",
    "sampling": (
        "Draws sixteen answers at temperature 1, and looks whether the right first token is among the likeliest. The "
        "control is a wrong answer of the same relation."
    ),
    "lens": "Reads after each layer whether the right answer leads: is it gone, or talked over at the end?",
}
DOWNLOAD_ABOUT = (
    "One zip: a report that opens offline, facts with their β and verdict, every measurement and every prompt as CSV, "
    "the adapter, and the command that makes the run again."
)
COMPARE_ABOUT = (
    "Lets several methods loose on the same facts, one after the other. Each is a real run with the anchors of tab 2 "
    "and its own learning rate, by one rule for all. **Without shuffled scores beside it, no difference shows that "
    "popularity made it.**"
)
COMPARE_EMPTY = (
    "Nothing has raced yet: pick contestants above and press Race, or start with AdaPop, AdaPop with its scores "
    "shuffled, and WGA."
)
COMPARE_GAP = (
    "Recall of the facts to forget. **The more a line leans to the right on its way down, the more of the famous facts "
    "is left.** The widest gap is at the top, a reversed one at the bottom."
)
COMPARE_COST = (
    "Up and to the left is better. What lies right of the dashed line or below it is beaten by another contestant. "
    "Numbers as before the names."
)
COMPARE_CHART_EMPTY = "appears when a run is done"
COMPARE_GAP_TABLE = "Recall of the facts to forget by contestant, popularity and form, with its range."
COMPARE_COST_TABLE = "Recall of facts to forget and of held-out facts by contestant, with ranges."
COMPARE_TABLE = (
    "At the end of each run. ↓ ↑ →0: which way is better. Recall has its range behind it; other metrics have one only "
    "over several seeds."
)
COMPARE_SAME = "In no setting: but for seeds they are the same."
COMPARE_DOWNLOAD = "The comparison with every run in full as one page that opens offline, and its numbers as CSV."
RECORDED_LABEL = "Recorded here, to lay over your runs"
RECORDED_ABOUT = "The same sandbox, measured by us with several seeds. Nothing of it is a run of yours."
RECORDED_NOTHING = "Nothing was recorded of these contestants. Choose every method, or race one of them."
RECORDED_WORDS = (
    "R1, R2 … are recorded, not run by you: mean of {seeds} and 95 % interval (Student's t over seeds) on the sandbox "
    "facts, every setting as its preset has it. Hollow in the pictures, and no part of the contest. Code {commits}; "
    "“{command}” makes them again."
)
RECORDED_OTHERS = "Another experiment than what was recorded, by its facts or settings, so no fair comparison: {names}."
PUBLISHED_UNUSABLE = "† flagged as unusable by the paper itself: what was to be kept is damaged as well."
PUBLISHED_LABEL = (
    "Published by Borisiuk et al. (2026), for models of 7 to 8 billion parameters and other facts. Nothing in this "
    "part was measured here, and none of it is drawn in the pictures above."
)
PUBLISHED_TABLE = "Published ROUGE-L recall by method; not measured here."
PUBLISHED_BESIDE = (
    "ROUGE-L recall, asked as trained; ± is the standard deviation over three seeds. The last column names what ours "
    "changes of the paper's preset."
)
PUBLISHED_NONE = "None of the contestants is a method as the paper ran it."
RACE_LENT = "GPU time: every epoch of every contestant asks for a lent GPU of its own; tab 3 says for how long."
LINK_GONE = (
    "The run of this address is not here: it was deleted, or never was. What you see is this browser's own run, if any."
)
BACK_TO_OWN = "Back to my run"
LOOK_ONLY = (
    "This run was opened by a read-only link: look at it, and take its report. Only who started it can stop, resume or "
    "question it. Start a run of your own for that."
)


SET_RESTORED = (
    "Below is the set that you used here last. Its file was not kept: upload it again to choose other columns or other "
    "facts to retain."
)
OTHER_SET = (
    "Nothing was started: the server no longer had the set that this page shows. It is put back now, if it was kept. "
    "Look at tab 1, then press Start again."
)
SET_EXPIRED = "The set that you used here last was deleted, as it was old. Upload it, or pick it, again."


def upload_about() -> str:
    """What an upload may hold, with this machine's limit."""
    return UPLOAD_ABOUT.format(rows=max_facts())
