"""Each of Gradio's internals that the app uses: what for, and a test that fails by its name once it changes.

Internal is what Gradio does not document: whatever is outside its top level, such as its queue, the attributes of its
events and the names in its page. `uses` finds in `adapop/ui` what has no row in INTERNALS; the rows of TEXTS and OPEN
are texts, which it cannot find. Read all rows again before another version of Gradio is allowed.
"""

import ast
import asyncio
import inspect
import re
import traceback
from functools import cache
from importlib import import_module
from pathlib import Path
from types import CodeType, ModuleType

import gradio as gr
import pytest
from starlette.requests import Request

from adapop.paths import ROOT

READ_IN = {"gradio": "6.31.0", "fastapi": "0.165.0"}  # the versions in which every row below was read
# (internal, modules of `adapop/ui` that use it, its type or its parameters, the function of Gradio that must read it
# because the app replaces it, what for)
INTERNALS = (
    ("fastapi.routing.Request", "body", "(scope, receive, send)", "fastapi.routing.request_response",
     "replaced, so that a body is parsed once, in a thread"),
    ("gradio.blocks.BlockFunction", "event_inputs", "class", "", "the type of an event"),
    ("gradio.blocks.BlockFunction.api_visibility", "event_inputs queue", "str", "", "whether programs may call it"),
    ("gradio.blocks.BlockFunction.fn", "queue wiring", "", "gradio.blocks.Blocks.call_function",
     "its function, wrapped to charge its time; a coroutine holds no thread"),
    ("gradio.blocks.BlockFunction.inputs", "event_inputs", "list", "", "which types its values must have"),
    ("gradio.blocks.BlockFunction.show_progress", "page", "str", "", "which events show no progress"),
    ("gradio.blocks.BlockFunction.show_progress_on", "page", "NoneType", "gradio.blocks.BlockFunction.get_config",
     "their progress goes to one small component"),
    ("gradio.blocks.Blocks._queue", "queue", "Queue", "gradio.blocks.Blocks.run_startup_events", "replaced by ours"),
    ("gradio.blocks.Blocks.default_config", "held", "BlocksConfig", "gradio.state_holder.SessionState.__init__",
     "what a new page copies"),
    ("gradio.blocks.Blocks.fns", "page queue wiring", "dict", "gradio.route_utils.get_fn",
     "every event, by its number"),
    ("gradio.blocks.BlocksConfig.blocks", "held", "dict", "", "a page's own components"),
    ("gradio.blocks.BlocksConfig.config_for_block", "held", "(_id, rendered_ids, block, renderable)",
     "gradio.state_holder.SessionState.__setitem__", "replaced: deep links are closed, and it takes 60 ms"),
    ("gradio.components.BrowserState.default_value", "event_inputs", "str", "", "the type that a browser stores"),
    ("gradio.components.Dropdown._constructor_args", "held", "list", "", "shortened in a page's components"),
    ("gradio.components.Dropdown._value_description", "held", "str", "", "emptied in a page's components"),
    ("gradio.components.Dropdown.allow_custom_value", "event_inputs", "bool", "", "whether None is accepted"),
    ("gradio.components.Dropdown.multiselect", "event_inputs", "NoneType", "", "whether a list is accepted"),
    ("gradio.components.Dropdown.value", "event_inputs", "str", "", "whether None is accepted"),
    ("gradio.context.LocalContext", "middleware", "class", "", "of the event at work"),
    ("gradio.context.LocalContext.request", "middleware", "ContextVar", "", "who sent it"),
    ("gradio.data_classes.PredictBodyInternal", "queue", "class", "", "an event as it is sent"),
    ("gradio.data_classes.PredictBodyInternal.data", "queue", "list", "", "its values, checked and completed"),
    ("gradio.data_classes.PredictBodyInternal.event_data", "queue", "NoneType", "", "made a dict, or Gradio fails"),
    ("gradio.data_classes.PredictBodyInternal.fn_index", "queue", "NoneType", "", "the number of its function"),
    ("gradio.data_classes.PredictBodyInternal.session_hash", "queue", "NoneType", "", "its page, limited in length"),
    ("gradio.events.Dependency", "session", "class", "", "what an event returns, for those that follow it"),
    ("gradio.processing_utils.async_transport", "middleware", "NoneType",
     "gradio.processing_utils.async_ssrf_protected_get", "replaced: nothing is fetched from an address"),
    ("gradio.queueing.Event", "queue", "(session_hash, fn, request, username)", "", "an event in the queue"),
    ("gradio.queueing.Event._id", "queue", "str", "", "the page's name of a call without a page"),
    ("gradio.queueing.Event.concurrency_id", "queue", "str", "", "its group"),
    ("gradio.queueing.Event.fn", "queue", "BlockFunction", "", "whether it holds a thread"),
    ("gradio.queueing.Event.request", "queue", "Request", "", "its visitor, and the bytes it was sent with"),
    ("gradio.queueing.Event.session_hash", "queue", "str", "", "its page"),
    ("gradio.queueing.EventQueue.concurrency_id", "queue", "str", "", "the name of a group"),
    ("gradio.queueing.EventQueue.concurrency_limit", "queue", "int", "", "its slots; one is a page's own"),
    ("gradio.queueing.EventQueue.current_concurrency", "queue", "int", "", "its busy slots"),
    ("gradio.queueing.EventQueue.queue", "queue", "list", "", "its waiting events, oldest first"),
    ("gradio.queueing.Queue", "queue", "class", "", "the base of ours"),
    ("gradio.queueing.Queue.__init__", "queue",
     "(live_updates, concurrency_count, update_intervals, max_size, blocks, default_concurrency_limit)", "",
     "extended"),
    ("gradio.queueing.Queue.active_jobs", "queue", "list", "gradio.queueing.Queue.start_processing",
     "events at work"),
    ("gradio.queueing.Queue.blocks", "queue", "Blocks", "", "the events of the app"),
    ("gradio.queueing.Queue.clean_events", "queue", "async (session_hash, event_id)", "gradio.routes.App.create_app",
     "extended: another event may begin"),
    ("gradio.queueing.Queue.compute_analytics_summary", "queue", "(records)", "gradio.queueing.Queue.process_events",
     "replaced by nothing: it took a twelfth of the time"),
    ("gradio.queueing.Queue.event_ids_to_events", "queue", "dict", "", "the bytes that are queued"),
    ("gradio.queueing.Queue.event_queue_per_concurrency_id", "queue", "dict", "", "the groups"),
    ("gradio.queueing.Queue.get_events", "queue", "()", "gradio.queueing.Queue.start_processing",
     "replaced: whose turn it is"),
    ("gradio.queueing.Queue.max_thread_count", "queue", "int", "gradio.queueing.Queue.start", "set: more slots"),
    ("gradio.queueing.Queue.pending_event_ids_session", "queue", "dict", "gradio.routes.App.create_app",
     "what a page waits for: one more name keeps its stream open"),
    ("gradio.queueing.Queue.pending_messages_per_session", "queue", "LRUCache", "gradio.routes.App.create_app",
     "answers that are not collected"),
    ("gradio.queueing.Queue.process_events", "queue", "async (events, batch, begin_time, fn)",
     "gradio.queueing.Queue.start_processing", "extended: state that nobody uses is forgotten"),
    ("gradio.queueing.Queue.push", "queue", "async (body, request, username)", "gradio.routes.App.create_app",
     "extended: limits, and types of values"),
    ("gradio.queueing.Queue.remove_from_queue", "queue", "async (event_id)", "gradio.routes.App.create_app",
     "extended: another event may begin"),
    ("gradio.queueing.Queue.send_message", "queue", "(event, event_message)", "gradio.queueing.Queue.process_events",
     "extended: an answer whose page is gone is dropped"),
    ("gradio.queueing.Queue.server_app", "queue", "App", "", "leads to the state of all pages"),
    ("gradio.queueing.Queue.sleep_when_free", "queue", "float", "gradio.queueing.Queue.start_processing",
     "set: longer"),
    ("gradio.queueing.Queue.start", "queue", "()", "gradio.blocks.Blocks.run_startup_events", "extended"),
    ("gradio.queueing.Queue.stopped", "queue", "bool", "", "ends the sweep"),
    ("gradio.queueing.traceback", "redaction", "module", "gradio.queueing.Queue.process_events",
     "replaced: errors are logged without their text"),
    ("gradio.route_utils.GradioMultiPartParser", "body", "class", "gradio.route_utils.upload_fn",
     "replaced: one file in a form"),
    ("gradio.route_utils.GradioMultiPartParser.__init__", "body",
     "(headers, stream, max_files, max_fields, upload_dir, upload_id, upload_progress, max_file_size, "
     "max_header_size)",
     "", "extended: one file in a form"),
    ("gradio.route_utils.GradioMultiPartParser._files_to_close_on_error", "body", "list", "",
     "deleted if not complete"),
    ("gradio.route_utils.GradioMultiPartParser.parse", "body", "async ()", "gradio.route_utils.upload_fn",
     "extended"),
    ("gradio.route_utils.traceback", "redaction", "module", "gradio.route_utils._cancel_background_task",
     "as above"),
    ("gradio.routes.App.state_holder", "queue", "StateHolder", "", "the state of all pages"),
    ("gradio.routes.traceback", "redaction", "module", "gradio.routes.App.create_app", "as above"),
    ("gradio.server_messages.EventMessage", "queue", "", "", "the type of a message to a page"),
    ("gradio.server_messages.ProcessCompletedMessage", "queue",
     "(msg, event_id, output, success, title, used_cache, cache_duration, avg_time)", "", "ends a page's stream"),
    ("gradio.state_holder.SessionState", "held queue", "(blocks)", "gradio.state_holder.StateHolder.__getitem__",
     "replaced by one that holds keys for large values"),
    ("gradio.state_holder.SessionState.__getitem__", "held", "(key)", "", "extended: a value for its key"),
    ("gradio.state_holder.SessionState.__init__", "held", "(blocks)", "", "extended: copies no configuration"),
    ("gradio.state_holder.SessionState.__setitem__", "held", "(key, value)", "", "extended: a key for its value"),
    ("gradio.state_holder.SessionState.blocks_config", "held", "BlocksConfig", "", "a page's own components"),
    ("gradio.state_holder.SessionState.state_data", "held", "dict", "", "the values of a page"),
    ("gradio.state_holder.StateHolder.lock", "queue", "lock", "", "held while a page is forgotten"),
    ("gradio.state_holder.StateHolder.session_data", "queue", "OrderedDict", "", "the pages, the latest used last"),
    ("gradio.state_holder.StateHolder.time_last_used", "queue", "dict", "", "forgotten with a page"),
    ("gradio.utils.get_upload_folder", "parts/download", "()", "", "where a file must lie to be served"),
)  # fmt: skip
# (text that stands in a file of the app, that file, the files of Gradio of which one must have it, what for)
TEXTS = (
    ("gradio_config", "assets/early.js", "templates/frontend/*.html", "the page before Gradio's scripts are there"),
    ("gradio-container", "assets/style.css", "templates/frontend/assets/*.js", "the style of the whole page"),
    ("theme_hash", "adapop/ui/served.py", "blocks.py", "the address of the colours"),
    ("x-gradio-server", "adapop/ui/served.py", "route_utils.py", "decides the addresses in a page"),
    ("x-gradio-user", "adapop/ui/queue.py", "templates/frontend/assets/*.js", "tells a browser from a program"),
)
# the paths that the gate leaves open, as Gradio's routes write them
OPEN = (
    "/user", "/login_check", "/token", "/app_id", "/startup-events", "/queue/data", "/queue/status", "/upload_progress",
    "/heartbeat/{session_hash}", "/file={path_or_url:path}", "/call/{api_name}/{event_id}",
    "/call/v2/{api_name}/{event_id}", "/queue/join", "/cancel", "/reset", "/upload", "/call/{api_name}",
    "/call/v2/{api_name}", "/info", "/openapi.json", "/config", "/static/{path:path}", "/assets/{path:path}",
    "/svelte/{path:path}", "/favicon.ico", "/theme.css", "/robots.txt", "/manifest.json",
)  # fmt: skip

THEIRS = ("gradio", "gradio_client", "fastapi")
DOCUMENTED = {*gr.__all__, "api", "themes"} - {"events"}
FUNCTIONS = (ast.FunctionDef, ast.AsyncFunctionDef)
PLAIN = {name for kind in (dict, list, set, str, asyncio.Queue) for name in dir(kind)}
# names of Gradio's objects that documented ones, requests, files and the app's own have too: a use may be of those
SHARED = """Event Request batch blur body change choices client close config events form head headers height host input
json label launch load lock method model_dump name outputs page parent progress query_params scope select session share
start state timeout value version visible""".split()


@pytest.fixture(autouse=True, scope="module")
def as_imported():
    """Gradio without what the app replaces in it, as another test of this process may have started the app."""
    with pytest.MonkeyPatch.context() as patch:
        for path in (row[0] for row in INTERNALS if row[3] and row[0].count(".") == 2):
            value, original = resolved(path), traceback if path.endswith("traceback") else None
            if isinstance(value, type):
                original = next(kind for kind in value.__mro__ if not kind.__module__.startswith("adapop"))
            patch.setattr(path, original)
        yield


@cache
def samples() -> dict[type, object]:
    """An instance of each class whose instances have attributes that the class has not."""
    from gradio.data_classes import PredictBodyInternal
    from gradio.queueing import Event, EventQueue, Queue
    from gradio.route_utils import GradioMultiPartParser
    from gradio.routes import App
    from gradio.state_holder import SessionState, StateHolder

    with gr.Blocks(analytics_enabled=False) as demo:
        box = gr.Dropdown(["a"])
        box.change(lambda text: text, box, box)
    holder, function = StateHolder(), demo.fns[0]
    holder.set_blocks(demo)
    queue, app = Queue(True, 1, 1.0, 1, demo, 1), App.create_app(demo)
    queue.set_server_app(app)
    request = Request({"type": "http"})
    every = (
        demo, demo.default_config, box, gr.BrowserState(""), function, request, holder, SessionState(demo),
        queue, app, PredictBodyInternal(data=[]), EventQueue("", 1), Event("page", function, request, None),
        GradioMultiPartParser({}, None, max_file_size=1),
    )  # fmt: skip
    return {type(one): one for one in every}


def resolved(path: str) -> object:
    """What a dotted path names in the installed packages. Raises AttributeError."""
    parts, rest = path.split("."), []
    while True:
        try:
            value = import_module(".".join(parts))
            break
        except ModuleNotFoundError:
            rest.insert(0, parts.pop())
    for name in rest:
        in_instances = isinstance(value, type) and isinstance(getattr(value, name, property()), property)
        value = getattr(samples().get(value, value) if in_instances else value, name)
    return value


@cache
def attributes() -> set[str]:
    """The names of the attributes of Gradio's objects that the app may come by."""
    listed = {row[0].rpartition(".")[2] for row in INTERNALS if row[3] or row[2] != "class"}
    names = listed | {name for one in samples().values() for name in dir(one)}
    return {name for name in names - PLAIN if not name.startswith("__")}


def is_internal(path: str) -> bool:
    """Whether a dotted path is of an undocumented name of Gradio's, and of no module."""
    package, _, name = path.partition(".")
    if package not in THEIRS or not name or (package == "gradio" and name.partition(".")[0] in DOCUMENTED):
        return False
    try:
        return not isinstance(resolved(path), ModuleType)
    except AttributeError:
        return True


def uses(source: str) -> set[str]:
    """The names of Gradio's internals in a module: imported, as attributes (known by their names), or overridden."""
    paths, internals = {}, set()  # local name -> dotted path

    def path_of(node: ast.AST) -> str:
        if isinstance(node, ast.Name):
            return paths.get(node.id, "")
        inner = path_of(node.value) if isinstance(node, ast.Attribute) else ""
        return f"{inner}.{node.attr}" if inner else ""

    nodes = [*ast.walk(ast.parse(source))]
    for node in nodes:
        if isinstance(node, ast.Import):
            paths |= {one.asname or one.name: one.name for one in node.names if one.name.split(".")[0] in THEIRS}
        elif isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in THEIRS:
            paths |= {one.asname or one.name: f"{node.module}.{one.name}" for one in node.names}
    internals |= {path.rpartition(".")[2] for path in paths.values() if is_internal(path)}
    own = {node.name for node in nodes if isinstance(node, FUNCTIONS)}
    for node in nodes:
        match node:
            case ast.Attribute(value=of, attr=name) if name not in PLAIN and not name.startswith("__"):
                private = name.startswith("_") and not (isinstance(of, ast.Name) and of.id in ("self", "cls", "os"))
                if private or name in attributes() or is_internal(path_of(node)):
                    internals.add(name)
            case ast.Assign(targets=[ast.Name(id=name)], value=value) if path_of(value):
                paths[name] = path_of(value)
            case ast.Call(func=ast.Name(id="getattr"), args=[_, ast.Constant(value=name), *_]):
                internals |= {name} & attributes()
            case ast.ClassDef(bases=bases):
                kinds = [resolved(path) for path in map(path_of, bases) if path]
                internals |= {name for kind in kinds for name in own & {*dir(samples().get(kind, kind))}}
    return internals - {name for name in own if name.startswith("_") and not name.endswith("__")}


def internals_by_module() -> dict[str, set[str]]:
    """Module -> the internals that it uses."""
    every = {path: uses(path.read_text(encoding="utf-8")) for path in (ROOT / "adapop" / "ui").rglob("*.py")}
    return {path.relative_to(ROOT / "adapop" / "ui").with_suffix("").as_posix(): names for path, names in every.items()}


def shape(value: object) -> str:
    """The parameters of a function or class; of any other value its type."""
    if not callable(value) or not (inspect.isroutine(value) or isinstance(value, type)):
        return type(value).__name__
    names = ", ".join(name for name in inspect.signature(value).parameters if name != "self")
    return f"{'async ' if inspect.iscoroutinefunction(value) else ''}({names})"


def names_in(code: CodeType) -> set[str]:
    """The names that a function reads, and those of the functions in it."""
    inner = [names_in(one) for one in code.co_consts if isinstance(one, CodeType)]
    return set(code.co_names).union(*inner)


@pytest.mark.parametrize(
    ("internal", "expected", "reader"), [pytest.param(row[0], *row[2:4], id=row[0]) for row in INTERNALS]
)
def test_gradio_still_has(internal, expected, reader):
    value = resolved(internal)
    assert isinstance(value, type) if expected == "class" else expected in ("", shape(value))
    assert not reader or internal.rpartition(".")[2] in names_in(inspect.unwrap(resolved(reader)).__code__)


@pytest.mark.parametrize(("text", "ours", "theirs"), [pytest.param(*row[:3], id=row[0]) for row in TEXTS])
def test_gradio_still_writes(text, ours, theirs):
    assert text in (ROOT / ours).read_text("utf-8")
    files = Path(gr.__file__).parent.glob(theirs)
    assert any(text in file.read_text("utf-8") for file in files)


@pytest.mark.parametrize("path", OPEN)
def test_gradio_still_serves(path):
    from adapop.ui.middleware import API, READ, WRITTEN
    from adapop.ui.served import PAGES, STATIC

    example, gate = re.sub(r"{.*?}", "x", path), (READ, WRITTEN, STATIC, PAGES)
    assert any(one.fullmatch(start + example) for one in gate for start in ("", API.rstrip("/"))), (
        "not open: delete it here"
    )
    assert f'"{path}"' in inspect.getsource(resolved("gradio.routes"))


def test_the_table_is_complete_and_names_nothing_unused():
    listed = {(module, path.rpartition(".")[2]) for path, modules, *_ in INTERNALS for module in modules.split()}
    used = {(module, name) for module, names in internals_by_module().items() for name in names}
    assert {(module, name) for module, name in used - listed if name not in SHARED} == set(), "give each a row"
    assert listed - used == set(), "no longer used: delete these rows"
    paths = [row[0] for row in INTERNALS]
    assert paths == sorted(set(paths)) and all(row[4] for row in INTERNALS)


@pytest.mark.parametrize(("source", "names"), [
    ("import gradio as gr\ndef f(): return gr.skip(), gr.Button().click, gr.queueing.Queue", {"Queue"}),
    ("from gradio import Blocks\ndef f(demo: Blocks):\n    for one in demo.fns.values(): one.rendered_in",
     {"fns", "rendered_in"}),
    ("from gradio import queueing as q\nclass A(q.Queue):\n    def close(self): self.mine = self.live_updates",
     {"Queue", "close", "live_updates"}),
    ("from gradio.blocks import *\ndef f(a): return a.b._value", {"*", "_value"}),
    ("import json\nclass A:\n    def _own(self): return self._x, json.loads(self._own())", set()),
])  # fmt: skip
def test_what_counts_as_a_use(source, names):
    assert uses(source) == names


def test_another_version_is_allowed_only_after_the_table_was_read_again():
    (specifier,) = re.findall(r"^gradio(.*)$", (ROOT / "requirements.txt").read_text("utf-8"), re.MULTILINE)
    major, minor, _ = READ_IN["gradio"].split(".")
    assert specifier == f">={major}.{minor},<{major}.{int(minor) + 1}"
    locked = (ROOT / "assets" / "space" / "requirements.lock").read_text("utf-8").split()
    assert {f"{name}=={version}" for name, version in READ_IN.items()} <= {*locked}
