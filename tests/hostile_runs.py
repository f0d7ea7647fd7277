"""A run whose every text is an attack: on the page that shows it, and on the spreadsheet that opens its tables."""

from adapop import Fact, FactSet, make_config
from adapop.probes.prompts import DIRECT, NotApplicable, ProbeRow, Reply
from adapop.remark import Remark
from adapop.runs.run import Run, create_run
from adapop.training.events import RunFailed, RunStarted
from browsing import HOSTILE as CODE

HOSTILE = f"{CODE}</script><script>window.hacked=1</script> {{% x %}} =1+1"
FORMULA = '=HYPERLINK("http://x.example")'


def reply(text, recall):
    return Reply(text, recall, recall, 1, -1.0, 1, 0.0)


def hostile_run(root) -> Run:
    """A run whose every text is an attack; made by hand, for no model would say this."""
    fact = Fact("f", HOSTILE, FORMULA, HOSTILE, HOSTILE, score=70.0, score_source=HOSTILE)
    notes = (HOSTILE, Remark("retain_from_set", {"facts": 1, "name": HOSTILE}))
    facts = FactSet(HOSTILE, (fact,), (Fact("r", f"{HOSTILE}?", HOSTILE),), notes=notes)
    config = make_config(model=HOSTILE, facts=HOSTILE, system=HOSTILE)
    run = create_run(config, facts, {"f": 1.5}, root, {"python": "3", HOSTILE: HOSTILE})
    sizes = dict(forget=1, retain=1, holdout=0, epochs=1, steps=1)
    run.append(RunStarted(run=run.id, model=HOSTILE, method="adapop", facts=HOSTILE, **sizes))
    run.append(RunFailed(run=run.id, message=HOSTILE, fix=HOSTILE))
    row = ProbeRow("f", "forget", "rare", DIRECT, HOSTILE, FORMULA, reply(HOSTILE, 1.0), reply(HOSTILE, 1.0))
    run.save_probes([row, NotApplicable("f", HOSTILE, HOSTILE)])
    return run
