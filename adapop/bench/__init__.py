"""Measurements anyone can make again: `python -m adapop bench NAME`."""
