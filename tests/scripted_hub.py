"""A datasets-server of a test's own: tables in pages, in the shape of https://huggingface.co/docs/dataset-viewer/rows."""

from adapop.online.cache import Cache
from adapop.online.hub import Hub
from adapop.progress import Progress
from scripted import Asked, Reply, ScriptedServer

LONGEST_PAGE = 100
Tables = dict[tuple[str, str, str], list[dict]]


def serve(server: ScriptedServer, tables: Tables) -> Hub:
    """Has the server answer as datasets-server does. tables: rows by dataset, config and split. Returns its reader."""
    server.answer = lambda asked: splits(tables, asked) if asked.path == "/splits" else page(tables, asked)
    return Hub(Progress(), Cache(), server.url)


def splits(tables: Tables, asked: Asked) -> object:
    found = [key for key in tables if key[0] == asked.query["dataset"]]
    listed = [{"dataset": dataset, "config": config, "split": split} for dataset, config, split in found]
    return {"splits": listed, "pending": [], "failed": []}


def page(tables: Tables, asked: Asked) -> object:
    query = asked.query
    rows = tables.get((query["dataset"], query["config"], query["split"]))
    if asked.path != "/rows" or rows is None:
        return Reply({"error": "Not found."}, 404)
    offset, length = int(query["offset"]), int(query["length"])
    if length > LONGEST_PAGE:
        return Reply({"error": "Parameter 'length' must not be greater than 100"}, 422)
    return page_of(rows, offset, length)


def page_of(rows: list[dict], offset: int, length: int = LONGEST_PAGE) -> dict:
    names = list(rows[0]) if rows else []
    shown = list(enumerate(rows))[offset : offset + length]
    return {
        "features": [{"feature_idx": i, "name": name, "type": {"_type": "Value"}} for i, name in enumerate(names)],
        "rows": [{"row_idx": i, "row": row, "truncated_cells": []} for i, row in shown],
        "num_rows_total": len(rows),
        "num_rows_per_page": 100,
        "partial": False,
    }
