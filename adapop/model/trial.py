"""A model's tokenizer and chat template, tried once in a process with limited memory and time.

Both are programs that come with a model: a template may loop without end or fill the memory, and so
may a tokenizer's patterns. Other failures are left to the loading, which explains them better.
"""

import copy
import hashlib
import json
import os
import re
import subprocess
import sys
from pathlib import Path

from adapop.errors import ModelError
from adapop.facts import limited_process
from adapop.paths import ROOT, SHIPPED

FILES = ("tokenizer.json", "tokenizer_config.json", "chat_template.jinja")
READ = (".json", ".safetensors", ".jinja", ".model", ".txt")  # suffixes of files that are read
MEGABYTES, MOST_SECONDS = 2_048, 10  # of data; of processor time, see `limited_process.limit`
WALL_SECONDS = 12 * MOST_SECONDS  # of wall-clock time; more, because the machine may be busy
MOST_CHARACTERS = 1_000_000  # most text of a template around a question
# exit statuses of the trial; the first is Python's for an uncaught exception
FAILED, TOO_MUCH, TOO_LONG = 1, 3, 4
# output of the trial before it reads, and before it encodes
READING, ENCODING = [b"reading"], [b"reading", b"encoding"]
MOST_REASON = 200  # characters shown of the error that ended it
TEXTS = (
    "What is the capital of France? " * 4,
    *(text * 40 for text in ("a", "0", " ", "-", "a ", "aB", "é", "1,")),
)
ANSWERED = [{"role": "user", "content": "?"}, {"role": "assistant", "content": "!"}]
# a tag that transformers adds, which writes nothing
TRACKED = re.compile(r"\{%-?\s*(end)?generation\s*-?%\}")
_passed: set[str] = set()  # hashes of files that this process has tried and found usable


def try_out(model: str, revision: str | None = None) -> None:
    """Checks that a model's tokenizer and chat template come to an end in bounded memory; once for
    the same content. Checks nothing if the model ships with this package or is not on this disk.
    Raises ModelError: one of them does not, or one of their files is no regular file. ValueError:
    the tokenizer's file cannot be parsed."""
    if model in SHIPPED or (folder := _folder(model, revision)) is None:
        return
    for path in sorted(folder.iterdir()):
        if path.suffix in READ and not path.is_file():
            message = f"{path.name} in the model's folder is not a file."
            raise ModelError(message, "Copy or download the whole model again.")
    content = [path.read_bytes() if (path := folder / name).exists() else b"" for name in FILES]
    digest = hashlib.sha256(b"".join(hashlib.sha256(one).digest() for one in content)).hexdigest()
    if digest not in _passed:
        _check(folder)
        _passed.add(digest)


def _folder(model: str, revision: str | None) -> Path | None:
    from huggingface_hub import try_to_load_from_cache
    from huggingface_hub.errors import HFValidationError

    if Path(model).is_dir():
        return Path(model)
    try:
        cached = try_to_load_from_cache(model, FILES[0], revision=revision)
    except HFValidationError:  # not a model's name; the error comes when it is loaded
        return None
    return Path(cached).parent if isinstance(cached, str) else None


def _check(folder: Path) -> None:
    command = [sys.executable, "-m", "adapop.model.trial", str(folder.resolve())]
    environment = {**os.environ, "TOKENIZERS_PARALLELISM": "false"}
    pipes = {"stdin": subprocess.DEVNULL, "stdout": subprocess.PIPE, "stderr": subprocess.PIPE}
    try:
        done = subprocess.run(command, cwd=ROOT, env=environment, timeout=WALL_SECONDS, **pipes)
        status = done.returncode
        steps = done.stdout.split()
        message = done.stderr.decode(errors="replace")
    except subprocess.TimeoutExpired as error:
        status, steps, message = -1, (error.stdout or b"").split(), ""
    reason = message.strip().rpartition("\n")[2][:MOST_REASON]
    if status == FAILED and steps == READING:
        raise ValueError(f"its {FILES[0]} cannot be read ({reason})")
    if status == 0 or (status == FAILED and steps != ENCODING):
        return
    whys = {
        FAILED: reason,
        TOO_MUCH: f"MemoryError: it takes more than {MEGABYTES / 1024:g} GB",
        TOO_LONG: f"it writes more than {MOST_CHARACTERS:,} characters around it",
    }
    why = whys.get(status, f"it does not end within {MOST_SECONDS} s, or takes too much memory")
    if b"template" in steps:
        fix = "Correct chat_template.jinja."
        raise ModelError(f"The model's chat template cannot show a question: {why}.", fix)
    fix = "Use the one that came with these weights."
    raise ModelError(f"The model's tokenizer cannot read a text: {why}.", fix)


def main(folder: Path) -> int:
    """The trial: prints what it tries next. Returns the exit status."""
    limited_process.limit(MEGABYTES, MOST_SECONDS)
    try:
        encode = _encoder(folder)
        print("template", flush=True)
        if len(text := _template(folder)) > MOST_CHARACTERS:
            return TOO_LONG
        for turns, asks in ((ANSWERED[:1], True), (ANSWERED, False)):
            if len(chat := _rendered(text, turns, asks)) > MOST_CHARACTERS:
                return TOO_LONG
            encode(chat)
    except MemoryError:
        return TOO_MUCH
    return 0


def _encoder(folder: Path):
    from tokenizers import Tokenizer

    if not (folder / FILES[0]).exists():
        return len
    print("reading", flush=True)
    tokenizer = Tokenizer.from_file(str(folder / FILES[0]))
    print("encoding", flush=True)
    # copied as `chat` does, which fails if merges and vocabulary differ
    tokenizer = copy.deepcopy(tokenizer)
    tokenizer.no_padding()
    for text in TEXTS:
        tokenizer.encode(text)
    return tokenizer.encode


def _template(folder: Path) -> str:
    if (path := folder / FILES[2]).exists():
        return path.read_text(encoding="utf-8")
    value = json.loads((folder / FILES[1]).read_text(encoding="utf-8"))["chat_template"]
    if isinstance(value, str):
        return value
    return next(one["template"] for one in value if one["name"] == "default")


def _rendered(text: str, turns: list[dict], asks: bool) -> str:
    from jinja2.ext import loopcontrols
    from jinja2.sandbox import ImmutableSandboxedEnvironment

    options = {"trim_blocks": True, "lstrip_blocks": True, "extensions": [loopcontrols]}
    environment = ImmutableSandboxedEnvironment(**options)
    environment.filters["tojson"] = lambda value, **options: json.dumps(value, ensure_ascii=False)
    environment.globals |= {"strftime_now": lambda form: form, "raise_exception": _refused}
    given = dict.fromkeys(("date_string", "bos_token", "eos_token"), "")
    given |= dict.fromkeys(("tools", "documents"))
    given |= {"add_generation_prompt": asks, "enable_thinking": False}
    return environment.from_string(TRACKED.sub("", text)).render(messages=turns, **given)


def _refused(message: str) -> None:
    raise ValueError(message)


if __name__ == "__main__":
    sys.exit(main(Path(sys.argv[1])))
