"""Measurements that anyone can repeat: `python -m adapop bench NAME`.

Read `plans` (a run, and the runs of each experiment), `trial` and `cells` (execute and measure
one), `results` (rows on disk) and `engine` (several processes), then `tables`, `sweep` and
`pictures` (made from the rows), and `run`, which joins them. `survival`, `signals_compared` and
`speed` are separate.
"""
