"""The order of the packages and what a source imports, as the tests of imports and of the drawings read them."""

import ast

# each line may import from all lines above it and never from its own; the README and `assets/docs/house.md` draw it
ORDER = (
    ("errors", "paths"), ("assets", "progress", "limits", "sums"), ("remark",), ("online",), ("facts",),
    ("popularity",), ("config",), ("model",), ("objectives", "probes"), ("training", "sandbox"),
    ("runs",), ("report", "service"), ("experiments", "ui"), ("cli",), ("__main__",),
)  # fmt: skip


def imports_of(source: str) -> list[str]:
    """Every module that a source names in an import, wherever it stands: "a.b" of `from a import b` too."""
    names = []
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            names += [node.module or "", *(f"{node.module}.{alias.name}" for alias in node.names)]
    return names
