"""Shipped example runs, shown before a user has made any: recorded by `COMMAND`, seed 0.

Each is packed as `assets/examples/NAME.zip`, a quarter of its original size. It is unpacked into a
folder of this process, so that nothing is written beside the code or among the user's runs. The
adapters are stored in float16 and were probed in this form; all other numbers are from training.
"""

import json
import re
import zipfile
from collections.abc import Iterator
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory
from threading import Lock
from typing import Any

from adapop import sums
from adapop.config.presets import make_config
from adapop.facts.catalog import load_facts
from adapop.model.adapter_folder import CONFIG, WEIGHTS
from adapop.paths import ASSETS
from adapop.runs import files
from adapop.runs.run import Run

FOLDER = ASSETS / "examples"
COMMAND = "python -m adapop sandbox examples"  # makes them again
SETTINGS: dict[str, dict[str, Any]] = {
    # First, because it fails at once where its package is missing.
    "smollm2": {
        "facts": "cities",
        "model": "smollm2",
        "asking": "text-examples",
        "micro_batch": 16,
    },
    "wga": {"method": "wga"},
    "adapop": {"method": "adapop"},
    "shuffled": {"method": "adapop", "preset": "shuffled"},
    "pair": {"method": "wga", "facts": "pair"},
    "redirect": {"method": "redirect", "preset": "tuned"},
}
EXAMPLES = tuple(SETTINGS)
ASKED = ("wga", "adapop", "redirect")  # examples that ship their adapter and probe results
PER_TIER = 8  # facts that are probed per group and tier, the page's default
PREFIX = "example-"
DROPPED = re.compile("lock|queued|visitor|.*/(optimizer.safetensors|README.md)")
UNPACKING = Lock()  # no visitor may read an example that is being unpacked for another
WHEN = (2026, 1, 1, 0, 0, 0)  # of every file, so that the same content gives the same zip


def example(name: str) -> Run:
    """One of `EXAMPLES`, read-only. Its id is "example-" and the name."""
    with UNPACKING:
        folder = Path(_unpacked().name) / f"{PREFIX}{name}"
        if not (folder / "config.json").exists():
            with zipfile.ZipFile(FOLDER / f"{name}.zip") as packed:
                packed.extractall(part := folder.with_name(f"part-{name}"))
            files.clear(folder)
            part.rename(folder)  # whole, or not at all
    return Run(folder)


def example_of(run_id: object) -> Run | None:
    """The example of an id from a request; None if there is none. Never used as a path."""
    is_example = isinstance(run_id, str) and run_id.startswith(PREFIX)
    name = run_id.removeprefix(PREFIX) if is_example else None
    return example(name) if name in EXAMPLES else None


@cache
def _unpacked() -> TemporaryDirectory:
    """A folder that ends with the process."""
    return TemporaryDirectory(prefix="adapop-examples-")


def make(name: str, out: Path) -> Run:
    """Runs an example again and packs it as `out/NAME.zip`. Returns the run as packed."""
    from adapop.runs.execute import execute, prepare

    out.mkdir(parents=True, exist_ok=True)
    config = make_config(**SETTINGS[name])
    new = prepare(config, load_facts(config.facts, config.model), out / "making")
    for _ in execute(new):
        pass
    run = Run(new.folder.rename(out / "making" / f"{PREFIX}{name}"))
    log = run.folder / "events.jsonl"
    lines = map(sums.opened, log.read_text(encoding="utf-8").splitlines())
    named = (sums.sealed(line.replace(new.id, run.id)) for line in lines)
    log.write_text("\n".join(named) + "\n", encoding="utf-8")
    run.share()
    if name in ASKED:
        _shrink(run.checkpoint(run.chosen_epoch))
        _probe(run)
    with zipfile.ZipFile(out / f"{name}.zip", "w", zipfile.ZIP_DEFLATED, compresslevel=9) as packed:
        for path in _packed_files(run, name in ASKED):
            inside = zipfile.ZipInfo(path.relative_to(run.folder).as_posix(), WHEN)
            packed.writestr(inside, path.read_bytes(), zipfile.ZIP_DEFLATED, 9)
    return run


def _packed_files(run: Run, with_adapter: bool) -> Iterator[Path]:
    """The files of a run to pack; of its checkpoints only the resulting adapter, or none."""
    result = run.checkpoint(run.chosen_epoch)
    for path in sorted(run.folder.rglob("*")):
        place = path.relative_to(run.folder).as_posix()
        packed = path.parent == run.folder or (with_adapter and path.parent == result)
        if packed and path.is_file() and not DROPPED.fullmatch(place):
            yield path


def _shrink(checkpoint: Path) -> None:
    """Rewrites an adapter in float16, and names its base model without a path of this machine."""
    import torch
    from safetensors.torch import load_file, save_file

    tensors = load_file(checkpoint / WEIGHTS).items()
    rounded = {key: tensor.to(torch.float16) for key, tensor in tensors}
    save_file(rounded, checkpoint / WEIGHTS, {"format": "pt"})
    about = checkpoint / CONFIG
    content = json.loads(about.read_text(encoding="utf-8")) | {"base_model_name_or_path": "sandbox"}
    about.write_text(json.dumps(content, indent=2), encoding="utf-8")
    sums.record_all(checkpoint)


def _probe(run: Run) -> None:
    """Asks everything that the page's button asks, and saves the replies."""
    from adapop.probes.battery import battery
    from adapop.probes.plan import Plan
    from adapop.progress import Progress
    from adapop.runs.model import load_model

    plan = Plan(per_tier=PER_TIER, max_new_tokens=run.reply_tokens)
    run.save_probes(battery(load_model(run), run.facts, plan, Progress()))
