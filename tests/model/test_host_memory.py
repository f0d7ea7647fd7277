"""Loading takes the weights' memory once, measured on a model of 200 MB in a process of its own."""

import json
import subprocess
import sys

import pytest
from transformers import LlamaConfig, LlamaForCausalLM

from adapop.paths import ROOT
from families import TOKENIZERS

MEASURED = """
import json, re, sys, threading, time
from adapop.config.presets import make_config
from adapop.model.loading import adapted_model

def now(kind):
    return int(re.search(kind + r":\\s+(\\d+)", open("/proc/self/status").read())[1]) * 1024

def watch():
    while not over:
        seen.append((now("VmRSS"), now("RssAnon")))
        time.sleep(0.002)

adapted_model(make_config())  # so that what is imported when first needed is not counted
over, seen = [], []
watching = threading.Thread(target=watch)
before = now("VmRSS"), now("RssAnon")
watching.start()
model = adapted_model(make_config(model=sys.argv[1], precision=sys.argv[2]))
over.append(True)
watching.join()
weights = sum(part.numel() * part.element_size() for part in model.network.parameters())
grown = [max(column) - start for column, start in zip(zip(*seen), before)]
print(json.dumps([size / weights for size in grown]))
"""


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A random model in bfloat16, in two files."""
    place, tokenizer = tmp_path_factory.mktemp("large"), TOKENIZERS["llama"]()
    shape = LlamaConfig(
        vocab_size=16_000, hidden_size=768, intermediate_size=2048, num_hidden_layers=13, num_attention_heads=12,
        num_key_value_heads=4, pad_token_id=0, bos_token_id=1, eos_token_id=2,
    )  # fmt: skip
    LlamaForCausalLM(shape).bfloat16().save_pretrained(place, max_shard_size="150MB")
    tokenizer.save_pretrained(place)
    return place


@pytest.mark.slow
@pytest.mark.parametrize("precision", ["bfloat16", "float32"])
def test_the_host_holds_the_weights_once(folder, precision):
    """Resident memory, all in all, where the files are in the run's precision; else without the files' own pages, which
    the system takes back when it needs them."""
    command = [sys.executable, "-c", MEASURED, str(folder), precision]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    resident, own = json.loads(done.stdout)
    assert own < 1.1
    if precision == "bfloat16":
        assert 0.9 < resident < 1.15
