"""Recovery probes: six ways to get facts back that need access to the model, each with a control.

`relearn` trains on some forgotten facts, asks for others; control: training on invented facts.
`quantise` rounds the merged weights; controls: the original model rounded, and retained facts.
`sampling` draws many answers, and ranks the first token; control: a wrong answer of the relation.
`lens` reads the answer's rank after each layer; control: a wrong answer of the relation. `patch`
puts one model's states into the other; controls: a wrong answer, facts never known. `two_hop` asks
questions that need the answer; control: their second hop alone.

Each takes a `Progress`, is deterministic for a seed, and leaves the model bit-identical. Each
raises DataError without a fact or for an answer without a token, RunError where the adapter, a loss
or a logit is not finite, and Stopped. A fact that none of them brings back may still be stored.
"""
