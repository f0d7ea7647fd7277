"""Facts and sets of facts: the user's files, the benchmarks, and the world of the sandbox."""
