"""How a shipped model is built: corpus, tokenizer, pretraining, and the card that measures it."""
