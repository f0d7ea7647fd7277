"""Trying to get a fact back. Forgetting the trained question proves little."""
