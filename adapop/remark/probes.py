"""Remarks on how a real model is asked, and on the model that it is compared with.

By kind, under the module that makes them; see `Remark`.
"""

SENTENCES = {
    # probes/oracle.py
    "oracle_missing": "Not compared with {model}, which never read these facts. {why}",
    # probes/prompting.py
    "ways_compared": "Facts answered, by form of the question: {ways}.",
    "asked_so": (
        "Asked {how}, the model answers {answered:,} of {facts} to forget. A reply has at most "
        "{most} tokens."
    ),
    "unknown_left_out": "A run leaves out the facts that the model does not know: {facts}.",
    "none_known": "It knows none of them. What it never knew, it cannot forget.",
    "own_words": "Answers are scored where they stand in the model's own replies.",
    "empty_replies": "Empty replies of the original: {count:,}.",
    "cut_replies": "Replies of the original that were cut off at that length: {count:,}.",
}
