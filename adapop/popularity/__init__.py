"""Popularity scores: where they come from, and the controls that show whether they matter."""
