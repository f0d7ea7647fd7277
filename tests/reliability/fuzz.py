"""Sends nonsense to every event of the page and every named endpoint, and counts what the app failed on.

A request may be refused in words. It may not be answered with an HTTP status of 500 or above, fail in a line of our
code, nor leave a traceback or a user's text in what the app prints.
"""

from __future__ import annotations

import argparse
import json
import random
import sys
import tempfile
import urllib.error
import urllib.request
from collections import Counter
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from calling import answer
from printed import failures

from adapop.experiments.speed.waiting import served

SECRET = "a-users-secret-words"
ODD = (
    None, True, False, 0, -1, 1e308, -1e308, 10**30, 0.1, "", " ", SECRET, SECRET * 3_000, "../../etc/passwd",
    "\0", "\ud7ff",
    "<img src=x onerror=alert(1)>", "=1+1", "sandbox", "adapop", "paper", [], {}, [[]], [None], [{}],
    {"a": {"a": {}}},
    [{"question": SECRET, "answer": SECRET, "score": -1}],
    {"index": [0, 0], "value": [SECRET], "row_value": 7}, {"rare": SECRET, "popular": [[], {}]}, {"runs": [SECRET]},
    {"path": "/etc/passwd", "meta": {"_type": "gradio.FileData"}},
    {"__type__": "update", "value": SECRET}, {"path": "http://127.0.0.1:1/", "meta": {"_type": "gradio.FileData"}},
    [SECRET] * 1_000, {"data": [[SECRET]], "headers": [SECRET]}, "2" * 400,
)  # fmt: skip


def main(calls: int, seed: int) -> int:
    """Prints what was answered. Returns 1 if the app failed on a request, is gone, or printed what it may not.

    calls: how many. seed: of what is sent.
    """
    chance, codes, answers = random.Random(seed), Counter(), Counter()
    with tempfile.TemporaryDirectory() as folder, served(Path(folder), lines=None, **_places(folder)) as app:
        config = answer(f"{app.address}config")
        events, usual = config["dependencies"], _usual(config)
        named = answer(f"{app.address}gradio_api/info")["named_endpoints"]
        endpoints = [(name.strip("/"), len(about["parameters"])) for name, about in named.items()]
        for number in range(calls):
            path, body = _nonsense(chance, events, endpoints, usual, number)
            code, said = _sent(f"{app.address}gradio_api/{path}", body)
            codes[code] += 1
            if code == 200:
                answers[_answer(app.address, path, body, said)] += 1
        alive = _sent(f"{app.address}config", None)[0] == 200
        printed = list(app.output)
    tracebacks = [line for line in printed if "Traceback" in line]
    ours, gradios = failures(printed)
    told = [line for line in printed if SECRET in line]
    print(f"{calls:,} calls over {len(events)} events and {len(endpoints)} endpoints, seed {seed}")
    print("HTTP           " + ", ".join(f"{count:,} x {code}" for code, count in sorted(codes.items())))
    print("answers        " + ", ".join(f"{count:,} x {kind}" for kind, count in answers.most_common()))
    print(f"failures       {len(ours)} in our code, {len(gradios)} in Gradio's own checks")
    print(f"tracebacks     {len(tracebacks)}")
    print(f"users' words   {len(told)} lines that quote them")
    for line in (*ours, *tracebacks, *told)[:5]:
        print("  " + line.rstrip()[:1_000])
    print("the app        " + ("answers" if alive else "is gone"))
    return int(any(code >= 500 for code in codes) or bool(ours or tracebacks or told) or not alive)


def _places(folder: str) -> dict[str, str]:
    # limits wide enough that requests are read and not counted away; nothing is looked up elsewhere
    wide = ("REQUESTS_A_MINUTE", "JOBS_AN_HOUR", "EVENT_MB_EACH", "UNREAD_EACH")
    return {
        "ADAPOP_PUBLIC": "1", "ADAPOP_CACHE": folder, "HTTPS_PROXY": "http://127.0.0.1:1",
        "HF_HUB_OFFLINE": "1",
    } | {f"ADAPOP_{name}": "100000" for name in wide}  # fmt: skip


def _usual(config: dict) -> dict[int, object]:
    """What each component of the page holds when it opens."""
    return {one["id"]: one["props"].get("value") for one in config["components"]}


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


def _sent(url: str, body: dict | None) -> tuple[int, str]:
    data = None if body is None else json.dumps(body).encode("utf-8", "replace")
    request = urllib.request.Request(url, data, {"Content-Type": "application/json"})
    try:
        with urllib.request.urlopen(request, timeout=60) as reply:
            return reply.status, reply.read().decode()
    except urllib.error.HTTPError as error:
        return error.code, ""


def _answer(address: str, path: str, body: dict, said: str) -> str:
    """How a queued call ended: complete, an error in words, or one without."""
    queued = json.loads(said)["event_id"]
    named = path.startswith("call/")
    url = f"{address}gradio_api/" + (f"{path}/{queued}" if named else f"queue/data?session_hash={body['session_hash']}")
    kind = ""
    with urllib.request.urlopen(url, timeout=120) as stream:
        for line in map(bytes.decode, stream):
            if line.startswith("event: "):
                kind = line.removeprefix("event: ").strip()
            elif line.startswith("data: ") and named and kind in ("complete", "error"):
                return (
                    kind
                    if kind == "complete" or len(line) > len('data: {"error": null}') + 3
                    else "error without words"
                )
            elif line.startswith("data: ") and not named:
                message = json.loads(line.removeprefix("data: "))
                if message.get("msg") == "process_completed":
                    worded = (message.get("output") or {}).get("error")
                    return "complete" if message["success"] else "error" if worded else "error without words"
    return "nothing"


if __name__ == "__main__":
    command = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    command.add_argument("--calls", type=int, default=1_000, help="how many; default 1,000")
    command.add_argument("--seed", type=int, default=0, help="of what is sent; default 0")
    sys.exit(main(**vars(command.parse_args())))
