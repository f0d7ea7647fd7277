"""The order of the packages, as the test of imports and the test of the drawings read it."""

# each line may import from all lines above it and never from its own; the README and `assets/docs/house.md` draw it
ORDER = (
    ("errors", "paths"), ("assets", "progress", "limits"), ("remark",), ("online",), ("facts",),
    ("popularity",), ("config",), ("model",), ("objectives", "probes"), ("training", "sandbox"),
    ("runs",), ("report", "service"), ("experiments", "ui"), ("cli",), ("__main__",),
)  # fmt: skip
