"""Recovery probes: five ways to get facts back that need access to the model, each with a control.

Each takes a `Progress`, is deterministic for a seed, and leaves the model bit-identical. Each
raises DataError without a fact or for an answer without a token, RunError where the adapter, a loss
or a logit is not finite, and Stopped. A fact that none of them brings back may still be stored.
"""
