"""Measurements anyone can make again: `python -m adapop bench NAME`.

Read `item` (a run), `plans` (which runs an experiment is made of), `trial` (an item done),
`results` (rows on disk), `engine` and `cluster` (who does them), then `tables`, `sweep` and
`pictures` (what rows say), and `run`, which joins them. `speed` stands alone.
"""
