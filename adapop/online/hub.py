"""Rows of public data sets from Hugging Face's datasets-server, page by page; each page is cached at once.

Format: https://huggingface.co/docs/dataset-viewer/rows and /splits. A page has at most 100 rows; `partial` means that
a data set is too big to be served whole; `truncated_cells` names cells that were cut.
"""

from __future__ import annotations

from adapop.errors import NetworkError, shown
from adapop.online.cache import Cache
from adapop.online.client import Web
from adapop.progress import Progress

BASE = "https://datasets-server.huggingface.co"
NAME = "The Hugging Face datasets-server"
PAGE = 100
AGAIN = "Try again later; what was found is kept."


class Hub:
    """Public data sets of the Hugging Face Hub, read through a cache."""

    def __init__(self, progress: Progress, cache: Cache, base: str = BASE) -> None:
        self._progress = progress
        self._cache = cache
        self._web = Web(base, NAME, progress)

    def rows(self, dataset: str, config: str, split: str) -> list[dict]:
        """All rows of a split, in order. An interrupted download continues where it ended.

        Raises:
            NetworkError: no such split; pages that are partial, truncated or not what was requested; a data set that
                changed meanwhile; or what `Web` raises.
        """
        rows, total = [], None
        while total is None or len(rows) < total:
            page = self._page(dataset, config, split, len(rows), total)
            if total not in (None, page["total"]):
                self._cache.put(None, "hub rows", dataset, config, split, "0")  # the next attempt starts over
                raise NetworkError(f"{dataset}, {split}, has changed while it was read.", "Start the download again.")
            total = page["total"]
            rows += page["rows"]
            self._progress.say(f"{dataset}, {split}: {len(rows):,} of {total:,} rows")
        return rows

    def config_of(self, dataset: str, split: str) -> str:
        """The name of the configuration that contains a split.

        Raises:
            NetworkError: none contains it, or the reply is no list of splits.
        """
        known = self._cache.get("hub splits", dataset)
        listed = known.value if known else []
        if split not in [name for _, name in listed]:
            listed = _listed(self._web.get("/splits", dataset=dataset), dataset)
            self._cache.put(listed, "hub splits", dataset)
        for config, name in listed:
            if name == split:
                return config
        names = ", ".join(sorted({shown(name) for _, name in listed})) or "none"
        raise NetworkError(f"{dataset} has no split {split} (its splits: {names}).", "Was it renamed on the Hub?")

    def _page(self, dataset: str, config: str, split: str, offset: int, total: int | None) -> dict:
        """{"rows": rows from an offset on, "total": number of rows in the split}. total: that number, if known."""
        key = ("hub rows", dataset, config, split, str(offset))
        known = self._cache.get(*key)
        if known and known.value and total in (None, known.value["total"]):
            return known.value
        reply = self._web.get("/rows", dataset=dataset, config=config, split=split, offset=offset, length=PAGE)
        page = _checked(reply, f"{dataset}, {split}", offset)
        self._cache.put(page, *key)
        return page


def _checked(reply: object, where: str, offset: int) -> dict:
    """The rows and the total of a page, checked to be what was requested."""
    items, total = _field(reply, "rows", list, where), _field(reply, "num_rows_total", int, where)
    if reply.get("partial"):
        raise NetworkError(f"{NAME} serves only a part of {where}.", "Download the data set and use it as a file.")
    due = min(PAGE, max(0, total - offset))
    if len(items) != due:
        raise NetworkError(f"{NAME} sends {len(items)} rows of {where} from row {offset} on; {due} were due.", AGAIN)
    rows = []
    for place, item in enumerate(items, start=offset):
        row = _field(item, "row", dict, where)
        if item.get("row_idx") != place:
            raise NetworkError(f"{NAME} sends another row of {where} than row {place}.", AGAIN)
        if cut := item.get("truncated_cells"):
            raise NetworkError(f"{NAME} cuts cells of {where}, row {place}, short: {shown(cut)}.", AGAIN)
        rows.append(row)
    return {"rows": rows, "total": total}


def _listed(reply: object, dataset: str) -> list[list[str]]:
    """[configuration, split] pairs."""
    items = _field(reply, "splits", list, dataset)
    return [[_field(item, "config", str, dataset), _field(item, "split", str, dataset)] for item in items]


def _field(value: object, name: str, kind: type, where: str):
    """A field of a JSON object.

    Raises:
        NetworkError: the value is no object, reports an error, or has no such field of that kind.
    """
    if isinstance(value, dict) and "error" in value:
        raise NetworkError(f"{NAME} says of {where}: {shown(value['error'])}", AGAIN)
    found = value.get(name) if isinstance(value, dict) else None
    if not isinstance(found, kind) or isinstance(found, bool):
        raise NetworkError(f"{NAME} answers something else than {name} of {where}.", AGAIN)
    return found
