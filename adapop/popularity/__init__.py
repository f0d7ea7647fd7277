"""Popularity scores: where they come from, and the controls that show whether they matter.

Read `base` (what a proxy is), then `wikidata` with `linking`, `judge`, `infinigram`, `corpus`; `controls` makes scores
wrong on purpose, `agreement` compares two, `scoredfile` writes them down.
"""
