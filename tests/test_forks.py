"""What importing the package settles for processes that are forked later, as ZeroGPU's are."""

import os
import subprocess
import sys

import pytest

from adapop.paths import ROOT, SANDBOX_FOLDER

THREADS = """
import os, sys
{first}
from tokenizers import Tokenizer
tokenizer = Tokenizer.from_file(sys.argv[1])
before = len(os.listdir("/proc/self/task"))
tokenizer.encode_batch(["one two three"] * 10_000)
print(len(os.listdir("/proc/self/task")) - before)
"""


@pytest.mark.skipif(not os.path.isdir("/proc/self/task"), reason="threads are counted in Linux's /proc")
@pytest.mark.parametrize("first", ["import adapop", ""])
def test_a_tokenizer_has_no_threads_that_a_fork_would_lose(first):
    """Once the package is imported; before, it starts some."""
    bare = {name: value for name, value in os.environ.items() if name != "TOKENIZERS_PARALLELISM"}
    command = [sys.executable, "-c", THREADS.format(first=first), str(SANDBOX_FOLDER / "tokenizer.json")]
    done = subprocess.run(command, cwd=ROOT, env=bare, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert (int(done.stdout) == 0) == bool(first)


@pytest.mark.parametrize(("given", "found"), [
    ({}, "expandable_segments:True"),
    ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, "backend:native"),
    ({"SPACES_ZERO_GPU": "true"}, "None"),
])  # fmt: skip
def test_a_gpus_memory_may_grow_in_pieces_where_nobody_says_otherwise(given, found):
    """It must be said before torch is loaded."""
    bare = {name: value for name, value in os.environ.items() if name not in ("PYTORCH_CUDA_ALLOC_CONF", *given)}
    code = "import os, sys, adapop; print(os.environ.get('PYTORCH_CUDA_ALLOC_CONF'), 'torch' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, env=bare | given, capture_output=True, text=True)
    assert done.stdout.split() == [found, "False"], done.stderr
