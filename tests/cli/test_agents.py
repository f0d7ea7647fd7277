import asyncio
import json
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack

import pytest

from adapop.errors import ConfigError
from adapop.runs.run import runs_root
from adapop.service.worker import Worker
from adapop.ui.agents import served_beside_page
from raised import raised
from serving import served
from tiny_runs import trained

TOOLS = {"check", "beta", "status", "probe", "report"}


@pytest.fixture(params=["stdin", "beside the page"])
def asked(tmp_path, request):
    """Calls tools of `adapop mcp` in a process of its own, or of an app, as an agent does."""
    pytest.importorskip("mcp")
    from mcp import Client
    from mcp.client.stdio import StdioServerParameters

    place = {**os.environ, "ADAPOP_RUNS": str(runs_root())}
    server = StdioServerParameters(command=sys.executable, args=["-m", "adapop", "mcp"], env=place)
    opened = ExitStack()
    if request.param != "stdin":
        server = opened.enter_context(served(runs_root(), ADAPOP_MCP="1")).address + "mcp"

    async def conversation(calls):
        async with Client(server, read_timeout_seconds=240) as agent:
            tools = (await agent.list_tools()).tools
            return tools, [await agent.call_tool(name, arguments) for name, arguments in calls]

    with opened, ThreadPoolExecutor() as thread:  # beside a browser, this one has an event loop already
        yield lambda *calls: thread.submit(asyncio.run, conversation(calls)).result()


@pytest.mark.slow
def test_an_agent_checks_asks_and_reports_and_can_start_nothing(asked, tiny):
    run = trained(tiny, runs_root(), measure="end")
    prompt = {"run": run.id, "prompt": "Who wrote the book Hamlet?", "gold": "Shakespeare"}
    tools, (check, beta, status, probe, report, redacted, unknown) = asked(
        ("check", {"facts": "pair", "epochs": 2}),
        ("beta", {"facts": "pair"}),
        ("status", {"run": run.id}),
        ("probe", prompt),
        ("report", {"run": run.id}),
        ("report", {"run": run.id, "redacted": True}),
        ("report", {"run": "../../etc"}),
    )
    assert {tool.name for tool in tools} == TOOLS
    looked = json.loads(check.content[0].text)
    assert looked["problems"] == [] and looked["forget"] == 2
    told = [json.loads(one.content[0].text) for one in (beta, status, probe, report, redacted)]
    assert told[0]["facts"] and told[1]["state"] == "done" and told[2]["original"]["text"]
    assert told[3]["by_fact"] and told[3]["run"] == run.id and told[4]["run"] == ""
    assert unknown.is_error and "There is no run '../../etc' here." in unknown.content[0].text
    facts = next(tool for tool in tools if tool.name == "check").input_schema["properties"]
    assert {"facts", "method", "epochs", "settings"} <= facts.keys()


@pytest.mark.parametrize(("text", "strangers", "said"), [("yes", "0", "ADAPOP_MCP is 'yes'"), ("1", "1", "strangers")])
def test_agents_are_served_beside_the_page_only_where_the_owner_asks_for_it(
    monkeypatch, tmp_path, text, strangers, said
):
    assert served_beside_page(Worker(tmp_path)) == {}
    monkeypatch.setenv("ADAPOP_MCP", text)
    monkeypatch.setenv("ADAPOP_PUBLIC", strangers)
    raised(ConfigError, said, lambda: served_beside_page(Worker(tmp_path)))
