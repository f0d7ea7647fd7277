"""Measurements anyone can make again: `python -m adapop bench NAME`.

Read `item` (a run), `plans` (which runs an experiment is made of), `trial` (executes one),
`results` (rows on disk) and `engine` (several processes), then `tables`, `sweep` and `pictures`
(made of the rows), and `run`, which joins them. `speed` stands alone.
"""
