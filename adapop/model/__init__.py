"""A base model with its adapter: text to tokens to scores. Loads nothing by itself."""
