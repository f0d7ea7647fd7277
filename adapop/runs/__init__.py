"""Runs on disk: preparing, executing and resuming them, with checks before and results after."""
