"""Replies of other weights than a loaded model's, by transformers alone."""

import torch

from adapop.model.chat import encode_prompt


def replies(network, model, questions, count=4) -> list[str]:
    """What transformers itself answers with other weights, greedily."""
    network.eval()
    tokenizer, ends = model.tokenizer, model.network.get_base_model().generation_config.eos_token_id
    how = {"max_new_tokens": count, "do_sample": False, "eos_token_id": ends, "pad_token_id": tokenizer.pad_token_id}
    texts = []
    for question in questions:
        ids = torch.tensor([encode_prompt(tokenizer, question, "")])
        said = network.generate(ids, **how)
        texts.append(tokenizer.decode(said[0, ids.shape[1] :], skip_special_tokens=True).strip())
    return texts
