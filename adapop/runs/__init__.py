"""A run on disk: prepared, executed, resumed, and what to know before and after it."""
