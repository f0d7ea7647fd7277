# /// script
# requires-python = ">=3.11"
# dependencies = ["huggingface-hub>=1.31"]
# ///
"""Unlearns facts on a rented GPU, measures, and sends the adapter with its card to the Hub.

Hugging Face Jobs runs it, with the package from your Space or repository:

hf jobs uv run --flavor a100-large --timeout 2h --secrets HF_TOKEN
    --with "git+https://huggingface.co/spaces/YOU/adapop-explorer"
    -v hf://datasets/YOU/facts:/data
    assets/jobs/unlearn.py --facts /data/mine.csv --model Qwen/Qwen2.5-1.5B-Instruct --push YOU/NAME

--check-only reads and checks facts and settings, loads no model, and sends nothing.
"""

import argparse
import sys

from huggingface_hub.utils import validate_repo_id


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--facts", required=True, help="a set by name, or a file of facts")
    parser.add_argument("--model", required=True, help="a Hub id")
    parser.add_argument("--method", default="adapop")
    parser.add_argument(
        "--push", required=True, metavar="YOU/NAME", help="a private model repository"
    )
    parser.add_argument("--set", action="append", default=[], metavar="NAME=VALUE")
    parser.add_argument("--check-only", action="store_true")
    options = parser.parse_args()

    from adapop import export, load_facts, make_config, unlearn
    from adapop.config.run import read_settings
    from adapop.errors import AdaPopError
    from adapop.remark import sentences
    from adapop.runs.preflight import preflight

    try:
        validate_repo_id(options.push)
        facts = load_facts(options.facts, options.model)
        settings = {"model": options.model, "facts": options.facts, **read_settings(options.set)}
        config = make_config(options.method, **settings)
        checked = preflight(facts, config)
        about = (checked.counts, *checked.costs, *checked.doubts, *checked.problems)
        print(*sentences(about, "command"), sep="\n", flush=True)
        if checked.problems or options.check_only:
            return int(bool(checked.problems))
        run = unlearn(config, facts)
        print(run.rows("measured").query("full").to_string(), flush=True)
        print(export(run, f"/tmp/{run.id}", push=options.push).address)
    except (AdaPopError, ValueError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
