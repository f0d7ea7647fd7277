"""Files of facts, written in any format that is read."""

import csv
import io
import json
import zipfile
from pathlib import Path
from xml.sax.saxutils import escape

import pyarrow
import pyarrow.parquet

from adapop.facts.fact import FactSet


def write(folder: Path, name: str, content: str | bytes | list | dict) -> Path:
    """content: of the file, or rows in the format that its name ends in."""
    path = folder / name
    if isinstance(content, list) and path.suffix == ".parquet":
        pyarrow.parquet.write_table(pyarrow.Table.from_pylist(content), path)
        return path
    if isinstance(content, list) and path.suffix == ".csv":
        text = io.StringIO()
        csv.writer(text, quoting=csv.QUOTE_ALL).writerows([list(content[0]), *(row.values() for row in content)])
        content = text.getvalue()
    elif isinstance(content, list) and path.suffix in BOOKS:
        content = BOOKS[path.suffix]({"Facts": [list(content[0]), *(row.values() for row in content)]})
    elif isinstance(content, list | dict):
        content = "\n".join(map(json.dumps, content)) if path.suffix == ".jsonl" else json.dumps(content)
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    return path


def excel(sheets: dict[str, list[list[object]]], hidden: str = "") -> bytes:
    """A workbook: name -> rows of texts, numbers, truth values and None. hidden: name of a sheet that is not shown."""
    names = "".join(
        f'<sheet name="{escape(name)}" sheetId="{i}" r:id="r{i}" state="{"hidden" if name == hidden else "visible"}"/>'
        for i, name in enumerate(sheets, 1)
    )
    links = "".join(
        f'<Relationship Id="r{i}" Type="{OFFICE}/relationships/worksheet" Target="worksheets/sheet{i}.xml"/>'
        for i in range(1, len(sheets) + 1)
    )
    parts = {
        "[Content_Types].xml": '<Types xmlns="http://schemas.openxmlformats.org/package/2006/content-types"/>',
        "_rels/.rels": f'<Relationships xmlns="{PACKAGE}"><Relationship Id="r0" '
        f'Type="{OFFICE}/relationships/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        "xl/workbook.xml": f'<workbook xmlns="{MAIN}" xmlns:r="{OFFICE}/relationships">'
        f"<sheets>{names}</sheets></workbook>",
        "xl/_rels/workbook.xml.rels": f'<Relationships xmlns="{PACKAGE}">{links}</Relationships>',
    }
    for i, rows in enumerate(sheets.values(), 1):
        lines = (f'<row r="{n}">{"".join(map(_excel_cell, row))}</row>' for n, row in enumerate(rows, 1))
        parts[f"xl/worksheets/sheet{i}.xml"] = (
            f'<worksheet xmlns="{MAIN}"><sheetData>{"".join(lines)}</sheetData></worksheet>'
        )
    return zipped(parts)


def open_document(sheets: dict[str, list[list[object]]]) -> bytes:
    """The same as an OpenDocument spreadsheet."""
    tables = "".join(
        f'<table:table table:name="{escape(name)}">'
        + "".join(f"<table:table-row>{''.join(map(_open_cell, row))}</table:table-row>" for row in rows)
        + "</table:table>"
        for name, rows in sheets.items()
    )
    spaces = " ".join(
        f'xmlns:{name}="urn:oasis:names:tc:opendocument:xmlns:{name}:1.0"' for name in ("office", "table", "text")
    )
    body = f"<office:body><office:spreadsheet>{tables}</office:spreadsheet></office:body>"
    return zipped({
        "mimetype": "application/vnd.oasis.opendocument.spreadsheet",
        "META-INF/manifest.xml": '<manifest xmlns="urn:oasis:names:tc:opendocument:xmlns:manifest:1.0"/>',
        "content.xml": f"<office:document-content {spaces}>{body}</office:document-content>",
    })  # fmt: skip


OFFICE = "http://schemas.openxmlformats.org/officeDocument/2006"
MAIN = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
PACKAGE = "http://schemas.openxmlformats.org/package/2006/relationships"
BOOKS = {".xlsx": excel, ".ods": open_document}


def zipped(parts: dict[str, str]) -> bytes:
    file = io.BytesIO()
    with zipfile.ZipFile(file, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, text in parts.items():
            archive.writestr(name, text, zipfile.ZIP_STORED if name == "mimetype" else None)
    return file.getvalue()


def _excel_cell(value: object) -> str:
    if isinstance(value, str):
        return f'<c t="inlineStr"><is><t xml:space="preserve">{escape(value)}</t></is></c>'
    if isinstance(value, bool):
        return f'<c t="b"><v>{int(value)}</v></c>'
    return "<c/>" if value is None else f"<c><v>{value!r}</v></c>"


def _open_cell(value: object) -> str:
    if isinstance(value, str):
        return f'<table:table-cell office:value-type="string"><text:p>{escape(value)}</text:p></table:table-cell>'
    if isinstance(value, bool):
        return f'<table:table-cell office:value-type="boolean" office:boolean-value="{str(value).lower()}"/>'
    if value is None:
        return "<table:table-cell/>"
    return f'<table:table-cell office:value-type="float" office:value="{value!r}"/>'


def notes_of(facts: FactSet) -> dict[str, dict]:
    """Kind of each of the set's notes -> its values."""
    return {note.kind: note.values for note in facts.notes}
