"""The eight cards of the tour: what each says, from the numbers of the tour's own runs, whichever way they fall."""

from collections import namedtuple
from collections.abc import Callable
from dataclasses import dataclass

from adapop.popularity.calibration import FADED
from adapop.ui.tour.story import Guard, Remains, Story, Training, TwoFacts

RARE, POPULAR = "rare", "popular"
CARDS = 8
NO_GAP = 0.05
SURE = 0.9
RETRY = "Press Back and then Next to try again."


# lines: its paragraphs. rows: a small table below the first, its head first. awaiting: it lacks what runs will bring
Card = namedtuple("Card", "title lines rows awaiting")
# what a card is told from. guess: rare, popular or None. confidence: p, where the slider of the Pressure screen stands
Moment = namedtuple("Moment", "story guess confidence")


@dataclass(frozen=True)
class Stop:
    """A place of the tour. card: its number, 1 to 8; the seventh has two stops. tab: the screen that is open. ring: the
    elem_id of what it talks about. forward: what the button to the next stop says. confidence: where the Pressure
    screen's slider goes, None if it stays. run: whether AdaPop's run of the tour is on the screen. ask: which of its
    prompts is, None for none."""

    card: int
    tab: str
    ring: str
    told: Callable[[Moment], Card]
    forward: str = "Next"
    confidence: float | None = None
    run: bool = False
    ask: str | None = None


def guess_card(moment: Moment) -> Card:
    """1: what would you expect?"""
    pair = moment.story.pair
    return _card(
        "Two facts. Which one is forgotten first?",
        f"A small language model knows “{pair.rare.question}” and “{pair.popular.question}”. Both answers are "
        f"{pair.rare.answer}. Now it should forget both, without being built anew: that is called unlearning. It "
        "is trained against each answer, and pushed equally hard: the even push. Which fact is forgotten first?",
    )


def score_card(moment: Moment) -> Card:
    """2: popularity is measured outside the model."""
    rare, popular = moment.story.pair.rare, moment.story.pair.popular
    return _card(
        "How famous is a fact?",
        "Each fact has a popularity score, which is not taken from the model that has to forget. "
        f"{rare.title} has {rare.score:,.0f}: rare. {popular.title} has {popular.score:,.0f}: popular. Source: "
        f"{rare.score_source}, that is how often the model read each fact while it learned. For facts of your own "
        "it can be looked up in Wikidata, or counted in texts.",
    )


def exponent_card(moment: Moment) -> Card:
    """3: a score becomes an exponent."""
    pair = moment.story.pair
    return _card(
        "A score becomes β, the pressure",
        "AdaPop, a method of unlearning, does not push evenly. It reads a number β off this curve. The popular "
        f"fact gets β = {pair.beta_popular:.2f}: a small β pushes on until the answer is gone. The rare fact gets "
        f"β = {pair.beta_rare:.2f}: a large β lets go early, for the answer goes easily. On the dashed line, "
        "β = 1, lies the even push; it is called WGA.",
    )


def fade_card(moment: Moment) -> Card:
    """4: what that does while a fact fades."""
    pair, p = moment.story.pair, moment.confidence
    popular, rare = (_times(p ** (beta - 1)) for beta in (pair.beta_popular, pair.beta_rare))
    return _card(
        "Watch both facts fade",
        "The slider is p: how sure the model still is of the right answer, from 1, certain, to 0, gone. It stands "
        f"at {p:.2f}. There AdaPop pushes the popular fact {popular} as hard as the even push, the rare one "
        f"{rare}. Drag it to the left: the rare fact is let go, while the popular one stays under pressure.",
    )


def training_card(moment: Moment) -> Card:
    """5: a real run."""
    training = moment.story.training
    if training is None:
        return _awaiting("Now a real run", "AdaPop trains on this machine, so that every number here is measured.")
    return _card(
        "Now a real run",
        f"AdaPop pushes out {training.forget} facts, rare and popular, and practises {training.retain} others, so "
        "that those stay. A pass goes through all of them once. Before, the model answered "
        f"{_tiers(training.before)}. {_so_far(training)}",
        awaiting=training.epoch < training.epochs,
    )


def guard_card(moment: Moment) -> Card:
    """6: the controller, whether or not it had to act."""
    guard = moment.story.guard
    if guard is None:
        return _awaiting("A guard for what should stay", "The guard speaks after the first pass over the facts.")
    lines = [
        "Pushing facts out can harm the rest. After each pass AdaPop measures how much its error on the facts to keep "
        f"has grown. This drift may reach {guard.tolerance:.0%}. {_acted(guard)}"
    ]
    if guard.unseen is not None and guard.unseen > guard.tolerance:
        lines.append(
            "Its blind spot: it compares with the end of the first pass, which had already made them "
            f"{guard.unseen:.0%} worse."
        )
    return _card("A guard for what should stay", *lines, awaiting=not guard.over)


def direct_card(moment: Moment) -> Card:
    """7: the trained question."""
    said, title = moment.story.reworded, "Ask the popular fact directly"
    if said is None:
        return _awaiting(title, "The question is asked as soon as the run is done.")
    verdict = "So it was not forgotten." if said.direct_known else "So it looks forgotten."
    return _card(
        title,
        "The model gets the question as it was trained: before forgetting (Original) and after (Unlearned). The "
        f"right answer is {moment.story.pair.popular.answer}. After forgetting, it says “{said.direct}”. {verdict} "
        "But that is only one way to ask.",
    )


def reworded_card(moment: Moment) -> Card:
    """7, second part: the same in other words."""
    said, title = moment.story.reworded, "Now in other words"
    if said is None:
        return _awaiting(title, "The question is asked as soon as the run is done.")
    count = f"{said.back} of {said.rewordings} rewordings"
    if said.back:
        hidden = "" if said.direct_known else " What looked forgotten was partly only hidden."
        end = f"{count} bring the answer back.{hidden}"
    else:
        end = f"None of the {said.rewordings} rewordings brings it back. These prompts failed; that is all it shows."
    return _card(title, f"“{said.question}” After forgetting, the model says “{said.answer}”. {end}")


def outcome_card(moment: Moment) -> Card:
    """8: the guess against the measurement, and what was not fixed."""
    story, title = moment.story, "What survived, and why"
    if not (story.adapop and story.wga):
        return _awaiting(title, "Your guess is answered as soon as both runs are measured.")
    rows = (
        ("Still answered, in other words", "rare, to forget", "popular, to forget", "to keep, never practised"),
        ("Even push (WGA)", *_shares(story.wga)),
        ("AdaPop", *_shares(story.adapop)),
    )
    lines = (_guessed(moment.guess, story.pair, story.wga), _gap(story.adapop, story.wga), _not_fixed(story))
    return _card(title, *lines, rows=rows)


STOPS = (
    Stop(1, "facts", "fact-table", guess_card),
    Stop(2, "facts", "strip-chart", score_card),
    Stop(3, "pressure", "beta-curve", exponent_card, confidence=SURE),
    Stop(4, "pressure", "confidence", fade_card, confidence=FADED),
    Stop(5, "run", "recall-chart", training_card, run=True),
    Stop(6, "run", "controller-chart", guard_card, run=True),
    Stop(7, "probe", "answers", direct_card, "Reword it", run=True, ask="direct"),
    Stop(7, "probe", "answers", reworded_card, run=True, ask="reworded"),
    Stop(8, "run", "outcome-chart", outcome_card, "Try it yourself", run=True),
)


def _card(title: str, *lines: str, rows: tuple = (), awaiting: bool = False) -> Card:
    return Card(title, lines, rows, awaiting)


def _awaiting(title: str, line: str) -> Card:
    return _card(title, line, awaiting=True)


def _times(factor: float) -> str:
    return f"{factor:,.1f} times" if factor >= 1.05 else f"{factor:.2f} times"


def _tiers(recall: tuple[float, float]) -> str:
    rare, popular = recall
    return f"{rare:.0%} of the rare and {popular:.0%} of the popular facts to forget"


def _so_far(training: Training) -> str:
    if training.epoch == 0:
        return f"The first of {training.epochs} passes is under way."
    rare, popular = training.now
    after = f"After pass {training.epoch} of {training.epochs}"
    return f"{after}: {rare:.0%} and {popular:.0%}, asked exactly as in training."


def _acted(guard: Guard) -> str:
    when = "It peaked at" if guard.over else "So far it peaked at"
    if guard.lam == 0:
        rest = "so the guard λ rested at 0" if guard.over else "so the guard λ rests at 0"
        return f"{when} {guard.worst:.0%}, {rest} and α, the weight of practising, stayed {guard.alpha0:.2f}."
    return (
        f"{when} {guard.worst:.0%} after pass {guard.worst_epoch}. So the guard λ woke up: it rose to {guard.lam:.2f} "
        f"and lifted α, the weight of practising, from {guard.alpha0:.2f} to {guard.alpha:.2f}."
    )


def _shares(outcome: Remains) -> tuple[str, str, str]:
    return f"{outcome.rare:.0%}", f"{outcome.popular:.0%}", f"{outcome.holdout:.0%}"


def _guessed(guess: str | None, pair: TwoFacts, wga: Remains) -> str:
    measured = (
        f"Under the even push {pair.rare.title} is still answered in {wga.kept_rare} of {wga.ways} ways of asking, "
        f"{pair.popular.title} in {wga.kept_popular}."
    )
    if wga.kept_rare == wga.kept_popular:
        return f"{measured} For these two it is a tie, whatever you guessed."
    first = RARE if wga.kept_rare < wga.kept_popular else POPULAR
    if guess is None:
        return f"{measured} The {first} one went first."
    name = {RARE: pair.rare, POPULAR: pair.popular}[guess].title
    right = "Right" if guess == first else "It was the other one"
    return f"You guessed {name}. {right}: {measured[0].lower()}{measured[1:]}"


def _gap(adapop: Remains, wga: Remains) -> str:
    was, now = (outcome.popular - outcome.rare for outcome in (wga, adapop))
    even, ours = round(100 * was), round(100 * now)
    left = f"The gap, popular minus rare, is {even} points under the even push and {ours} under AdaPop."
    if abs(was) < NO_GAP:
        return f"{left} There was hardly one to close."
    why = "Popular facts survive an even push: read more often, they sit deeper. " if was > 0 else ""
    if abs(now) >= abs(was):
        return f"{why}{left} AdaPop did not narrow it."
    turned = " and turned it round" if now * was < 0 else ""
    return f"{why}{left} AdaPop, which pushes longest on the popular ones, narrowed it{turned}."


def _not_fixed(story: Story) -> str:
    ours, even, rare = story.adapop, story.wga, story.pair.rare.title
    said = [
        f"Not fixed: reworded, AdaPop's model still answers {ours.every:.0%} of what it should forget (even push: "
        f"{even.every:.0%})."
    ]
    if ours.leaks:
        said.append(f"{ours.leaks} of {ours.facts} facts look forgotten until somebody rewords the question.")
    if ours.kept_rare > even.kept_rare:
        said.append(f"{rare} is still answered in {ours.kept_rare} of {ours.ways} ways.")
    if ours.holdout < even.holdout:
        said.append("Facts to keep that were never practised suffer more than under the even push.")
    return " ".join(said)
