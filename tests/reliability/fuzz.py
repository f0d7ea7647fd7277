"""Sends nonsense to every event of the page and every named endpoint, and counts what the app failed on.

A request may be refused in words. It may not be answered with an HTTP status of 500 or above, fail in a line of our
code, nor leave a traceback or a user's text in what the app prints.
"""

import json
import random
import tempfile
from collections import Counter
from pathlib import Path

from calling import answer, completed, failures, run_as_command, sent, streamed

from serving import served

SECRET = "a-users-secret-words"
ODD = (
    None, True, False, 0, -1, 1e308, -1e308, 10**30, 0.1, "", " ", SECRET, SECRET * 3_000, "../../etc/passwd", "\0",
    "\ud7ff", "<img src=x onerror=alert(1)>", "=1+1", "sandbox", "adapop", "paper", [], {}, [[]], [None], [{}],
    {"a": {"a": {}}}, [{"question": SECRET, "answer": SECRET, "score": -1}], {"runs": [SECRET]}, "2" * 400,
    {"index": [0, 0], "value": [SECRET], "row_value": 7}, {"rare": SECRET, "popular": [[], {}]}, [SECRET] * 1_000,
    {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}}, {"__type__": "update", "value": SECRET},
    {"path": "http://127.0.0.1:1/", "meta": {"_type": "gradio.FileData"}}, {"data": [[SECRET]], "headers": [SECRET]},
)  # fmt: skip


def main(calls: int, seed: int) -> int:
    """Prints what was answered. Returns 1 if the app failed on a request or is gone. Gradio
    prints the errors that an event raises, which may quote a visitor; ids and keys are masked."""
    chance, codes, answers = random.Random(seed), Counter(), Counter()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), lines=None, **_places(folder)) as app:
        config = answer(f"{app.address}config")
        events = config["dependencies"]
        usual = {one["id"]: one["props"].get("value") for one in config["components"]}  # when the page opens
        named = answer(f"{app.address}gradio_api/info")["named_endpoints"]
        endpoints = [(name.strip("/"), len(about["parameters"])) for name, about in named.items()]
        for number in range(calls):
            path, body = _nonsense(chance, events, endpoints, usual, number)
            content = json.dumps(body).encode("utf-8", "replace")
            code, reply = sent(f"{app.address}gradio_api/{path}", content, {"Content-Type": "application/json"})
            codes[code] += 1
            if code == 200:
                answers[_answer(app.address, path, body, reply)] += 1
        alive = sent(f"{app.address}config", None)[0] == 200
        printed = list(app.output)
    tracebacks = [line for line in printed if "Traceback" in line]
    ours, gradios = failures(printed)
    quotes = [line for line in printed if SECRET in line]
    print(f"{calls:,} calls over {len(events)} events and {len(endpoints)} endpoints, seed {seed}")
    print("HTTP           " + ", ".join(f"{count:,} x {code}" for code, count in sorted(codes.items())))
    print("answers        " + ", ".join(f"{count:,} x {kind}" for kind, count in answers.most_common()))
    print(f"failures       {len(ours)} in our code, {len(gradios)} in Gradio's own checks")
    print(f"tracebacks     {len(tracebacks)}")
    print(f"users' words   {len(quotes)} lines that quote them")
    for line in (*ours, *tracebacks, *quotes)[:5]:
        print("  " + line.rstrip()[:1_000])
    print("the app        " + ("answers" if alive else "is gone"))
    return int(any(code >= 500 for code in codes) or bool(ours) or not alive)


def _places(folder: str) -> dict[str, str]:
    # limits wide enough that requests are read and not counted away; nothing is looked up elsewhere
    wide = ("REQUESTS_A_MINUTE", "WRITTEN_MB_AN_HOUR", "PROCESSOR_SECONDS_AN_HOUR")
    here = {"ADAPOP_PUBLIC": "1", "ADAPOP_CACHE": folder, "HTTPS_PROXY": "http://127.0.0.1:1", "HF_HUB_OFFLINE": "1"}
    return here | {f"ADAPOP_{name}": "100000" for name in wide}


def _answer(address: str, path: str, body: dict, reply: bytes) -> str:
    """How a queued call ended: complete, an error in words, or one without."""
    if not path.startswith("call/"):
        message = completed(address, body["session_hash"], 120)
        worded = (message.get("output") or {}).get("error")
        done = "complete" if message.get("success") else "error" if worded else "error without words"
        return done if message else "nothing"
    kind, content = streamed(f"{address}gradio_api/{path}/{json.loads(reply)['event_id']}", patience=120)
    worded = content["error"] if isinstance(content, dict) and "error" in content else content
    return "error without words" if kind == "error" and not worded else kind or "nothing"


def _nonsense(
    chance: random.Random, events: list[dict], endpoints: list[tuple[str, int]], usual: dict[int, object], number: int
) -> tuple[str, dict]:
    """(path, body) of a call: now an event, now an endpoint, now of the right length and now not. Of the values of an
    event about half are those of the page as it opens, so that what comes after the first is met too."""
    if number % 3:
        event = events[(number - number // 3) % len(events)]
        strange = chance.random()
        data = [chance.choice(ODD) if chance.random() < strange else usual[one] for one in event["inputs"]]
        body = {"fn_index": event["id"], "session_hash": f"fuzz{number}", "trigger_id": chance.choice([None, 1, 10**9])}
        body, path = {**body, "event_data": chance.choice(ODD)}, "queue/join"
    else:
        name, takes = endpoints[number // 3 % len(endpoints)]
        data, body, path = [chance.choice(ODD) for _ in range(takes)], {}, f"call/{name}"
    if chance.random() < 0.2:
        data = data[:-1] if chance.random() < 0.5 else [*data, SECRET]
    return path, {**body, "data": data}


if __name__ == "__main__":
    run_as_command(main, __doc__, calls=(1_000, "how many"), seed=(0, "of what is sent"))
