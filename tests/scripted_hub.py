"""A Hub of a test's own: tables as the Parquet files of `refs/convert/parquet`, for huggingface_hub to download."""

import hashlib
import io

import pyarrow as pa
import pyarrow.parquet

from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.progress import Progress
from scripted import Asked, Reply, ScriptedServer

Tables = dict[tuple[str, str, str], list[dict]]
LISTED, RESOLVED = "/api/datasets/", "/datasets/"
BRANCH = "/revision/refs%2Fconvert%2Fparquet"
MAIN = "/revision/main"


def serve(server: ScriptedServer, tables: Tables, rows_a_file: int = 100) -> Hub:
    """Has the server answer as the Hub does. tables: rows by dataset, config and split. Returns its reader."""
    files = {}
    for (dataset, config, split), rows in tables.items():
        for number in range(max(1, -(-len(rows) // rows_a_file))):
            part = rows[number * rows_a_file : (number + 1) * rows_a_file]
            files[dataset, f"{config}/{split}/{number:04}.parquet"] = parquet(part)
    return serve_files(server, files)


def serve_files(server: ScriptedServer, files: dict[tuple[str, str], bytes]) -> Hub:
    """Has the server answer with files as they were uploaded, by data set and name. Returns its reader."""
    commit = hashlib.sha1(repr(sorted(files.items())).encode()).hexdigest()
    server.answer = lambda request: answer(files, commit, request)
    return Hub(Progress(), Cache(), server.url)


def parquet(rows: list[dict]) -> bytes:
    """The rows as a Parquet file, in which a column of numbers and texts is all texts: a column has one type."""
    columns = {name: [row.get(name) for row in rows] for name in dict.fromkeys(name for row in rows for name in row)}
    for name, cells in columns.items():
        if len({type(cell) for cell in cells} - {type(None)}) > 1:
            columns[name] = [None if cell is None else str(cell) for cell in cells]
    file = io.BytesIO()
    pyarrow.parquet.write_table(pa.table(columns), file)
    return file.getvalue()


def answer(files: dict[tuple[str, str], bytes], commit: str, request: Asked) -> Reply:
    """What https://huggingface.co/api/datasets/{id}/revision/… and /datasets/{id}/resolve/{commit}/{file} answer."""
    branch = next((end for end in (BRANCH, MAIN) if request.path.endswith(end)), None)
    if request.path.startswith(LISTED) and branch:
        dataset = request.path[len(LISTED) : -len(branch)]
        names = [name for of, name in files if of == dataset]
        if not names:
            return Reply(b"", 401, {"X-Error-Code": "RepoNotFound"})
        return Reply({"id": dataset, "sha": commit, "siblings": [{"rfilename": name} for name in names]})
    dataset, _, place = request.path.removeprefix(RESOLVED).partition("/resolve/")
    of, _, name = place.partition("/")
    if of != commit:
        return Reply(b"", 404, {"X-Error-Code": "RevisionNotFound"})
    if (dataset, name) not in files:
        return Reply(b"", 404, {"X-Error-Code": "EntryNotFound", "X-Repo-Commit": commit})
    content = files[dataset, name]
    etag = hashlib.sha256(content).hexdigest()
    return Reply(content, 200, {"ETag": f'"{etag}"', "X-Repo-Commit": commit, "Content-Type": "binary/octet-stream"})


def downloads(server: ScriptedServer) -> list[str]:
    """The files that were asked for, in order."""
    paths = [request.path for request in server.asked if request.method == "GET" and "/resolve/" in request.path]
    return [path.rpartition("/resolve/")[2].partition("/")[2] for path in paths]
