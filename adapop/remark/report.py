"""Remarks on several runs beside each other.

By kind, under the module that makes them; see `Remark`.
"""

SENTENCES = {
    # report/comparison.py
    "apart": "Shown in grey and not compared ({reason}): {names}.",
    "no_control": (
        "No run here has shuffled scores. Without that control, a difference is no evidence that "
        "popularity caused it: {shuffled}"
    ),
    "unequal_weights": (
        "These runs start with different retain weights (α₀ = {alphas}). A run that protects the "
        "retain set less forgets more and keeps less. The preset “gentle” is AdaPop with α₀ = 1."
    ),
    "unmeasured": "Not measured, because the run did not finish: {names}.",
    "unprobed": "Not probed, so without attacks: {names}.",
    "no_contest": (
        "Nothing was forgotten beyond chance, so there is nothing to compare yet. Run the methods "
        "again with more epochs or a higher learning rate."
    ),
    "collapsed": "Not on the Pareto front, because the model collapsed: {names}.",
}
