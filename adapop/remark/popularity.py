"""Remarks on scores and on the β that they give.

By kind, under the module that makes them; see `Remark`.
"""

SENTENCES = {
    # popularity/calibration.py
    "anchors_scale": (
        "Anchors chosen for this set: the paper's, {points}, because its scores are on Wikidata's "
        "scale."
    ),
    "anchors_own_scale": (
        "Anchors chosen for this set: the 5% and 95% quantiles of its scores, {points}, because "
        "they are on a scale of their own."
    ),
    "anchors_no_spread": (
        "Anchors chosen for this set: the paper's, {points}, because its scores lie too close "
        "together for anchors of their own."
    ),
    "plain_ascent": (
        "Every fact has β = 0, which is plain gradient ascent: the pressure never ends and is "
        "highest on facts that are already forgotten."
    ),
    "same_beta": "Every fact has β = {beta:.2f}: popularity cannot matter here.",
    "beta_without_popularity": (
        "β runs from {least:.2f} to {most:.2f} but does not follow popularity: the rarest fact has "
        "{rare:.2f}, the most popular one {popular:.2f}."
    ),
    "narrow_beta": (
        "β only runs from {least:.2f} to {most:.2f}, which is close to one fixed β for all facts."
    ),
    "still_pushed": (
        "Where the model is {percent:.0f}% sure, the {stronger} fact (β = {small:.2f}) still gets "
        "{factor:,.0f} times the pressure of the {weaker} (β = {large:.2f})."
    ),
    "one_beta": (
        "All scores are the same or zero, so all facts get the same β, and popularity cannot "
        "matter here."
    ),
    "narrow_scores": (
        "Nine in ten scores lie between {low} and {high}, within a factor of ten, so β only runs "
        "from {least:.2f} to {most:.2f} for them."
    ),
    "other_scale": (
        "These scores are on another scale than the anchors: the scores run from {low} to {high}, "
        "the anchors from {rare} to {popular}. Put the anchors at this set's own quantiles."
    ),
    "close_anchors": (
        "The two anchors are less than a factor of three apart, so a small error in a score "
        "changes β a lot."
    ),
    "upper_clip": (
        "{share:.0%} of the facts are clipped to the largest β, {clip:g}, so their scores make no "
        "difference between them."
    ),
    "lower_clip": (
        "{share:.0%} of the facts are clipped to the smallest β, {clip:g}, so their scores make no "
        "difference between them."
    ),
    "both_clips": (
        "{share:.0%} of the facts are clipped, {upper:.0%} to the largest β, {high:g}, and "
        "{lower:.0%} to the smallest, {low:g}, so the scores of those with the same β make no "
        "difference between them."
    ),
    # popularity/agreement.py
    "both_scored": "{first} and {second} both score {facts}.",
    "one_scored": "Scored by only one of them: {facts}.",
    "correlation": (
        "Spearman {spearman}, Pearson in log space {pearson}; {same:.0%} of the facts are on the "
        "same side of both medians."
    ),
    "same_tier": (
        "If “popular” begins at {popular:,.0f}, as on Wikidata's scale and on the judge's, both "
        "put {same:.0%} of the facts into the same tier, rare or popular."
    ),
    "beta_shift": (
        "With the same curve for both, β differs by {shift:.2f} on average; with anchors at each "
        "scoring's own quantiles, by {own:.2f}."
    ),
    "beta_shift_no_anchors": (
        "With the same curve for both, β differs by {shift:.2f} on average. Their own quantiles "
        "are too close for anchors."
    ),
}
