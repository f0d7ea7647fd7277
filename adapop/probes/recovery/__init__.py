"""Getting facts back from inside: four probes that a prompt cannot replace, each with a control beside it.

| probe | what it does | control |
|---|---|---|
| `relearn.relearn` | trains on a few forgotten facts and asks for the others | the same training on invented facts |
| `quantise.quantise` | rounds the merged weights | the original model rounded alike, and retained facts |
| `sampling.sample` | draws many answers, and looks down the list of first tokens | a wrong answer of the relation |
| `lens.lens` | reads the answer's rank after each layer | a wrong answer of the relation |

Each takes a `Progress`, draws by seed, and leaves the model as it was, bit for bit. What none of them brings back may
still be there.
"""
