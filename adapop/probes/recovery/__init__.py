"""Recovery probes: six ways to get facts back that need access to the model, each with a control.

| probe | what it does | control | |---|---|---| | `relearn.relearn` | trains on a few forgotten
facts and asks for the others | the same training on invented facts | | `quantise.quantise` | rounds
the merged weights | the original model, also rounded, and retained facts | | `sampling.sample` |
draws many answers, and ranks the first token | a wrong answer of the relation | | `lens.lens` |
reads the answer's rank after each layer | a wrong answer of the relation | | `patch.patch` | puts
one model's states into the other | a wrong answer of the relation, and facts never known | |
`two_hop.two_hop` | asks questions that need the answer | their second hop alone |

Each takes a `Progress`, is deterministic for a seed, and leaves the model bit-identical. Each
raises DataError without a fact or for an answer without a token, RunError where the adapter, a loss
or a logit is not finite, and Stopped. A fact that none of them brings back may still be stored.
"""
