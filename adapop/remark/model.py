"""Remarks on a model: how it is loaded and asked, and what happens while it is trained.

By kind, under the module that makes them; see `Remark`.
"""

SENTENCES = {
    # model/precision.py
    "emulated_bfloat16": (
        "The GPU ({gpu}, compute capability {capability}) has no bf16 arithmetic, which torch then "
        "emulates, slowly. Use a GPU from Ampere on (A10, L4, A100 ...), or {float32}, with which "
        "the weights take twice the memory."
    ),
    "precision_tried": (
        "Precision: {precision}. In a trial on this CPU, a step in {other} took {factor:.1f} times "
        "as long."
    ),
    # model/paired.py
    "compared_by_text": (
        "The two models have different vocabularies or shapes, so only their replies are compared, "
        "not the probabilities of tokens."
    ),
    "models_take_turns": (
        "The two models do not fit into memory together, so each is loaded again when it is asked."
    ),
    # model/converted.py
    "dequantised": (
        "Its weights are dequantised from a GGUF file ({types}), so every number describes the "
        "quantised model."
    ),
    "gemma_terms": (
        "Gemma is provided under and subject to the Gemma Terms of Use found at "
        "ai.google.dev/gemma/terms: to use it is to agree to them."
    ),
    # model/adapter_folder.py
    "adapter_merged": "This model is {base} with the adapter {adapter} merged into it.",
    # model/chat.py
    "thinking_off": "The model is asked without thinking: its chat template is given {flag}.",
    "thought_ended": (
        "The model is asked without thinking: its chat template opens a thought, which {end} "
        "closes."
    ),
    # model/adapter.py
    "targets_missing": (
        "The model has no layers called {names}, so the adapter is only on {adapted}."
    ),
    "blocks_without_adapter": "{count} of the model's {blocks} have no layer with an adapter.",
    # model/adapted.py
    "beginnings_not_shared": (
        "The rows begin with the same text, but this model's layers cannot share it, so each row "
        "is computed by itself."
    ),
    # objectives/rmu.py
    "steering": (
        "The states of block {block} are steered towards a length of {length:.3g}; those of the "
        "original have {norm:.3g} on average."
    ),
    "weak_steering": (
        "The states of block {block} are steered towards a length of {length:.3g}; those of the "
        "original have {norm:.3g} on average, so the steering is weak."
    ),
    # training/gradient.py
    "fewer_rows": "Memory ran out with {rows} a pass, so the step was repeated with {fewer}.",
    "activations_recomputed": (
        "Memory ran out on a single row, so activations are now recomputed instead of being stored."
    ),
}
