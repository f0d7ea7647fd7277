"""The tour's story, made by hand."""

from adapop.facts.catalog import load_facts
from adapop.ui.tour.story import (
    Guard,
    Remains,
    Reworded,
    Story,
    Training,
    TwoFacts,
)

RARE, POPULAR = load_facts("pair").forget
PAIR = TwoFacts(RARE, POPULAR, 1.27, 0.21)
WGA = Remains(
    rare=0.24, popular=0.82, every=0.53, holdout=0.98, leaks=81, facts=256, kept_rare=0, kept_popular=4, ways=5
)
ADAPOP = Remains(0.40, 0.53, 0.45, 0.91, leaks=99, facts=256, kept_rare=5, kept_popular=2, ways=5)
TRAINING = Training(forget=256, retain=250, epochs=5, epoch=3, before=(1.0, 0.99), now=(0.44, 0.62))
GUARD = Guard(0.1, worst=3.157, worst_epoch=2, lam=0.319, alpha0=0.5, alpha=0.819, unseen=0.56, over=True)
SAID = Reworded("Fellini", False, "Who is the director of A Clockwork Orange?", "Kubrick", True, back=2, rewordings=4)
STORY = Story(PAIR, TRAINING, GUARD, SAID, ADAPOP, WGA)
