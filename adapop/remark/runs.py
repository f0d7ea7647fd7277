"""Remarks on a run: before it starts, on what it did, and on its result.

By kind, under the module that makes them; see `Remark`.
"""

TOO_OPTIMISTIC = (
    "chosen on questions that also count in the results, so its numbers are too optimistic."
)
SENTENCES = {
    # runs/preflight.py
    "counts": (
        "Forget set: {facts}; retain set: {retain:,}; held out: {holdout:,}. {steps} in {epochs}."
    ),
    "counts_uneven": (
        "Forget set: {facts}; retain set: {retain:,}; held out: {holdout:,}. {steps} of "
        "{sizes} facts in {epochs}."
    ),
    "cities_retained": (
        "This set has no facts to keep that the model knows, so the model is trained to keep "
        "{retain:,} facts of the included set “cities”, and {holdout:,} more are held out. Facts "
        "like yours would protect it better{retain_choice}."
    ),
    "longest_row": "Longest question and answer: {tokens}.",
    "memory_unknown": "Memory: known once the model is loaded.",
    "memory_least": "Memory: at least {bytes}, with one row of {tokens} at a time.",
    "memory_of_gpu": "Memory: at least {bytes} of the GPU's, with one row of {tokens} at a time.",
    "memory_more": "Memory: about {bytes} on top of the app's own.",
    "time_unknown": "Time: known after the first steps.",
    "time_by_last_run": "Time: about {seconds}, estimated from the last run on this machine.",
    "licence": "You must accept its licence ({licence}) at {page} and set HF_TOKEN.",
    "no_forget": "There is no fact to forget. Pick a set{facts_tab}, or add scores to the facts.",
    "no_retain": (
        "There is nothing to retain. Choose facts to retain{facts_tab}, or add rows with 'retain' "
        "in a column called group."
    ),
    "too_long": (
        "A question with its answer has {tokens}, and the model reads {context:,}. Shorten it."
    ),
    "both_ways": (
        "In both the forget set and the retain set, so trained in both directions: {questions}."
    ),
    "answers_apart": (
        "No fact of the retain set shares an answer with the forget set, so the model may unlearn "
        "these answers everywhere."
    ),
    "weak_answers": "{answers} may also occur in replies that do not answer the question: {named}.",
    "no_scores": (
        "These facts have no popularity scores, and this method weighs facts by them. Choose a "
        "method that needs none, such as {methods}, or look popularity up."
    ),
    "no_score": (
        "{facts} {has} no score. Decide{facts_tab} what to do about it, or look popularity up."
    ),
    "no_score_uniform": "Without a score, and so with β = 1: {facts}.",
    "oracle_beside": (
        "At the end, the model is compared on facts of {sets} with {model}, which never read them. "
        "That one is loaded too, and takes about {bytes} more."
    ),
    "not_its_world": (
        "The included model was trained on none of these facts ({questions}). It knows, and can "
        "forget, only facts of its own world. Use a larger language model, such as smollm2, or "
        "teach the model these facts first ({teach})."
    ),
    "best_flatters": (
        f"The best epoch is {TOO_OPTIMISTIC} Compare it only with runs that chose their epoch in "
        "the same way."
    ),
    "facts_left_out": "{facts} that the original model cannot answer {was} left out.",
    # runs/check.py
    "memory_of_step": "Memory: a step took {bytes} of the GPU's.",
    "taught_first": (
        "The model now answers {answered:,} of the {facts} that it was asked. It is first "
        "fine-tuned on the facts to forget and to retain, with {questions} and in {epochs}. What "
        "it then knows is measured and reported before anything is unlearned."
    ),
    "time_of_teaching": "About {seconds} of that go into fine-tuning the model first.",
    "time_by_trial": (
        "Time: about {seconds} on this {device}: {step:.2g} s a step, {epoch:.1f} s after each "
        "epoch, {end:.1f} s for the tables at the end."
    ),
    "unknown_beforehand": (
        "The model knows {answered:,} of the {facts} that it was asked. What it never knew, it "
        "cannot forget. Use facts that it knows, ask in the form in which it was trained, use "
        "another model, or teach it these facts first ({teach})."
    ),
    "step_fails": "A trial step failed: {error}",
    "rate_and_batch": "Learning rate {rate:g}, at most {batch} facts a step.",
    "answered_now": (
        "Of {facts} asked here directly, with the question that training uses, the model answers "
        "{answered:,}. Recall: {recalls}."
    ),
    "forms_measurable": "Forms of the question in which forgetting can be measured: {forms}.",
    "forms_in_part": "Measured only on the facts that the model answers in that form: {forms}.",
    "forms_too_low": "Not measurable, because recall before the run is below {least:g}: {forms}.",
    "forms_impossible": "Forms in which these facts cannot be asked: {forms}.",
    # runs/amount.py
    "few_facts": (
        "With so few facts, one answer more or less is {share:.0%} of the result, so small "
        "differences may be chance."
    ),
    "few_known": (
        "With so few facts that the model knows, one answer more or less is {share:.0%} of what it "
        "can forget, so small differences may be chance."
    ),
    "few_steps": (
        "{steps} at rate {rate:g} may hardly change the model. Raise {lr} or {epochs}, or lower "
        "{batch}, for more steps."
    ),
    # runs/result.py
    "controller_idle": (
        "The controller was never activated: drift stayed within tolerance, so λ stayed 0."
    ),
    "damage_unseen": (
        "Compared with the loss before training, however, the retain loss rose by up to "
        "{rise:.0%}. The reference is taken after epoch 1, so drift does not show earlier damage."
    ),
    "nothing_forgotten_elsewhere": (
        "Nothing was forgotten: recall of the facts to forget was {before:.2f} and is {after:.2f}."
    ),
    "utility_damaged_elsewhere": (
        "The model is badly damaged: only {after:.0%} of the other questions are still answered, "
        "{before:.0%} before."
    ),
    "retain_damaged_elsewhere": (
        "The model is badly damaged: only {after:.0%} of the retain set is still answered, "
        "{before:.0%} before."
    ),
    "holdout_damaged_elsewhere": (
        "The model is badly damaged: only {after:.0%} of the held-out facts are still answered, "
        "{before:.0%} before."
    ),
    "best_kept": (
        "The result is the model after epoch {epoch}, of {epochs} trained. Of the epochs that keep "
        "{kept:.0%} of the recall of the retain set, it answers the fewest facts of the forget set "
        f"when asked in other words. It was {TOO_OPTIMISTIC}"
    ),
    "most_kept": (
        "No epoch kept {kept:.0%} of the recall of the retain set. The result is the model after "
        "epoch {epoch}, of {epochs} trained, which kept the most. It was "
        f"{TOO_OPTIMISTIC}"
    ),
    "ended_early": (
        "Training ended after {epochs} of {planned:,}, because {patience:,} in a row brought no "
        "improvement."
    ),
    "not_measured": (
        "Nothing was measured, because the run's settings turn measuring off (measure: off). Probe "
        "the run to see what the model still answers."
    ),
    "never_known": (
        "The original model answers only {known:.0%} of these facts. What it never knew, it cannot "
        "forget."
    ),
    "forgotten_in_all": "Forgotten in all forms of the question that were measured: {left}.",
    "half_forgotten": (
        "At least half is forgotten in all forms of the question that were measured: {left}."
    ),
    "forgotten_and_damaged": (
        "Forgotten in all forms of the question that were measured, but the model is badly damaged "
        "(see the note on what it lost): {left}."
    ),
    "forgotten_only": "Not forgotten: {left}. At least half is forgotten only when asked {ways}.",
    "left_in_some_ways": "When {left}. At least half is forgotten only when asked {ways}.",
    "not_unlearned": "Less than half is forgotten: {left}.",
    "nothing_forgotten": (
        "Nothing was forgotten: recall of the facts to forget was {before:.2f} and is {after:.2f}, "
        "after {steps} at rate {rate:g}. Raise {lr} or {epochs}, or lower {batch}, which gives "
        "more steps."
    ),
    "utility_damaged": (
        "The model is badly damaged: only {after:.0%} of the other questions are still answered, "
        "{before:.0%} before. Lower {lr} or {epochs}, or raise {alpha0}."
    ),
    "retain_damaged": (
        "The model is badly damaged: only {after:.0%} of the retain set is still answered, "
        "{before:.0%} before. Lower {lr} or {epochs}, or raise {alpha0}."
    ),
    "holdout_damaged": (
        "The model is badly damaged: only {after:.0%} of the held-out facts are still answered, "
        "{before:.0%} before. Lower {lr} or {epochs}, or raise {alpha0}."
    ),
    "damage_unknown": (
        "The other questions cannot show whether the model is damaged, because it answered only "
        "{before:.0%} of them before the run."
    ),
    # runs/adopted.py
    "adapter_base_unknown": (
        "The adapter names {base} as its base, which was not found here. Only the shapes of its "
        "weights show that it belongs to this original."
    ),
    # ui/run/launch.py
    "unknown_go": "Facts that the model does not know are left out when the run begins.",
    # runs/finetuning.py
    "fine_tuned": (
        "Fine-tuned first: {questions}, {epochs} at rate {rate:g}, {steps} in {time:.0f} s. Recall "
        "of the model as given → of the fine-tuned model, the original of this run: {recalls}."
    ),
    "taught_too_few_epochs": (
        "Fine-tuning taught too little: the model answers {after:.0%} of the facts to forget that "
        "were asked, {before:.0%} before it. Judging by its loss, about {needed:,} epochs would be "
        "enough instead of {now:,} ({start_epochs}); this is an estimate."
    ),
    "taught_too_little": (
        "Fine-tuning taught too little: the model answers {after:.0%} of the facts to forget that "
        "were asked, {before:.0%} before it, at a loss of {loss:.2f} nats a token. Raise "
        "{start_epochs} or {start_rate}; the losses do not tell by how much."
    ),
    "taught_at_a_cost": (
        "Fine-tuning damaged other knowledge: the model answers {after:.0%} of the held-out facts, "
        "{before:.0%} before it. Lower {start_rate} or {start_epochs}, or add facts to retain."
    ),
    "fine_tuned_before": (
        "Fine-tuned first: {questions}, {epochs} at rate {rate:g}, {steps} taken from an earlier "
        "run, which took {time:.0f} s. Recall of the model as given → of the fine-tuned model, the "
        "original of this run: {recalls}."
    ),
    # runs/execute.py
    "no_wrong_answers": (
        "For {count} of {facts} the model wrote no usable wrong answer, so answers of other facts "
        "are used."
    ),
}
