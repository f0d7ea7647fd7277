"""A little Wikidata that answers as the real one does; five items to put into it.

The shapes are those of Wikibase's own code (repo/includes/Api/SearchEntities.php, GetEntities.php, ResultBuilder.php).
"""

from dataclasses import dataclass, field

from scripted import Asked

CITY, COUNTRY, HUMAN, NOVEL = "Q515", "Q6256", "Q5", "Q8261"
PROPERTIES = {"P17": ("country",), "P1376": ("capital of",), "P50": ("author", "written by")}


@dataclass(frozen=True)
class Item:
    """An item of the little Wikidata. links: item-valued statements by property; identifiers, strings: other ones.

    language: of its names. article: the title in that Wikipedia, by default its label; "" for none.
    """

    qid: str
    label: str
    aliases: tuple[str, ...] = ()
    links: dict[str, tuple[str, ...]] = field(default_factory=dict)
    sitelinks: int = 1
    identifiers: int = 0
    strings: int = 0
    deprecated: bool = False
    language: str = "en"
    article: str | None = None


def statement(property_: str, datatype: str, value: object, rank: str = "normal") -> dict:
    kind = "wikibase-entityid" if datatype == "wikibase-item" else "string"
    content = {"datavalue": {"value": value, "type": kind}}
    snak = {"snaktype": "value", "property": property_, "datatype": datatype, **content}
    return {"mainsnak": snak, "type": "statement", "id": "Q1$1", "rank": rank}


def row(item: Item) -> dict:
    """An item as `wbgetentities` sends it."""
    rank = "deprecated" if item.deprecated else "normal"
    claims = {
        pid: [
            statement(pid, "wikibase-item", {"entity-type": "item", "numeric-id": int(qid[1:]), "id": qid}, rank)
            for qid in qids
        ]
        for pid, qids in item.links.items()
    }
    claims["P214"] = [statement("P214", "external-id", str(i)) for i in range(item.identifiers)]
    claims["P1448"] = [statement("P1448", "string", str(i)) for i in range(item.strings)]
    childless = {"snaktype": "novalue", "property": "P40", "datatype": "wikibase-item"}
    claims["P40"] = [{"mainsnak": childless, "type": "statement", "id": "Q1$2", "rank": "normal"}]
    wiki, title = f"{item.language.replace('-', '_')}wiki", item.label if item.article is None else item.article
    names = [wiki] * bool(title) + [f"w{i}" for i in range(item.sitelinks)]
    sites = {name: {"site": name, "title": title, "badges": []} for name in names[: item.sitelinks]}
    return {
        "type": "item",
        "id": item.qid,
        "labels": {item.language: {"language": item.language, "value": item.label}},
        "descriptions": {item.language: {"language": item.language, "value": f"about {item.qid}"}},
        "aliases": {item.language: [{"language": item.language, "value": name} for name in item.aliases]}
        if item.aliases
        else [],
        "claims": {pid: group for pid, group in claims.items() if group},
        "sitelinks": sites or [],
    }


class LittleWikidata:
    """Searches by prefix, in the order of its items, and sends entities; `redirects` are merged items.

    room: entities that fit in a reply; the others are left out, as MediaWiki does when a reply grows too large.
    """

    def __init__(self, *items: Item, redirects: dict[str, str] | None = None, room: int = 50) -> None:
        self.items = {item.qid: item for item in items}
        self.redirects = redirects or {}
        self.room = room

    def __call__(self, request: Asked) -> object:
        if request.query["action"] == "wbsearchentities":
            return self.search(request.query["search"], request.query["type"], int(request.query["limit"]))
        return {"entities": self.entities(request.query["ids"].split("|")), "success": 1}

    def search(self, text: str, kind: str, limit: int) -> dict:
        items = {item.qid: (item.label, *item.aliases) for item in self.items.values()}
        hits = []
        for id_, names in (PROPERTIES if kind == "property" else items).items():
            match = next((name for name in names if name.casefold().startswith(text.casefold())), None)
            if match is not None:
                how = {"type": "label" if match == names[0] else "alias", "language": "en", "text": match}
                hits.append({"id": id_, "title": id_, "label": names[0], "match": how})
        return {"searchinfo": {"search": text}, "search": hits[:limit], "success": 1}

    def entities(self, ids: list[str]) -> dict:
        rows = {}
        for qid in ids[: self.room]:
            target = self.redirects.get(qid, qid)
            rows[qid] = row(self.items[target]) if target in self.items else {"id": qid, "missing": ""}
            if target != qid:
                rows[qid]["redirects"] = {"from": qid, "to": target}
        return rows


PRINCE = Item("Q167646", "Paris", links={"P31": (HUMAN,)}, sitelinks=60)
PARIS = Item("Q90", "Paris", ("City of Light",), {"P31": (CITY,), "P17": ("Q142",)}, 3, identifiers=4, strings=5)
TEXAS = Item("Q830149", "Paris", links={"P31": (CITY,), "P17": ("Q30",)}, sitelinks=2)
FRANCE = Item("Q142", "France", ("French Republic",), {"P31": (COUNTRY,), "P36": ("Q90",)}, 7, identifiers=1)
STATES = Item("Q30", "United States", ("USA",), {"P31": (COUNTRY,)}, sitelinks=8)
