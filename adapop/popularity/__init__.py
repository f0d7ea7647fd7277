"""Popularity scores of facts, their sources (`Proxy` in `base`), and the map from a score to the
exponent beta."""
