"""How the shipped model is built: corpus, tokenizer, pretraining, and the card with measurements of
the result."""
