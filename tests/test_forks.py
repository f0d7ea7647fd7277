"""What importing the package settles for processes that are forked later, as ZeroGPU's are."""

import os

import pytest

from adapop.paths import SANDBOX_FOLDER
from launching import printed

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
    code, file = THREADS.format(first=first), SANDBOX_FOLDER / "tokenizer.json"
    assert (int(printed(code, file, without=["TOKENIZERS_PARALLELISM"])) == 0) == bool(first)


@pytest.mark.parametrize(("given", "value"), [
    ({}, "expandable_segments:True"),
    ({"PYTORCH_CUDA_ALLOC_CONF": "backend:native"}, "backend:native"),
    ({"SPACES_ZERO_GPU": "true"}, "None"),
])  # fmt: skip
def test_a_gpus_memory_may_grow_in_pieces_where_nobody_says_otherwise(given, value):
    """It must be said before torch is loaded."""
    code = "import os, sys, adapop; print(os.environ.get('PYTORCH_CUDA_ALLOC_CONF'), 'torch' in sys.modules)"
    assert printed(code, without=["PYTORCH_CUDA_ALLOC_CONF"], **given).split() == [value, "False"]
