"""Popularity scores of facts, their sources, and the map from a score to the exponent beta.

`base` defines a proxy, a source of scores; the proxies are `wikidata` with `linking`, `pageviews`,
`judge`, `infinigram` and `corpus`. `beta` maps scores to exponents, `calibration` chooses that map,
`controls` makes scores wrong on purpose, `agreement` compares two proxies, `scoredfile` writes.
"""
