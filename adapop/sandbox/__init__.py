"""How the shipped model is made of its world: corpus, tokenizer, pretraining, and the card that measures the result."""
