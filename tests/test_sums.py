import json

import pytest

from adapop import sums
from adapop.errors import RunError
from adapop.runs import files
from edited import flipped_bit
from raised import raised


def test_a_kept_file_is_as_it_was_written_or_named(tmp_path):
    path = tmp_path / "table.json"
    for values in ({"a": 0.25}, {"a": 0.5, "é": 1.0}):  # replaced, as a later probe does
        files.keep(path, json.dumps(values))
        assert files.read_json(path, dict[str, float]) == values
    content = path.read_bytes()
    for place in range(len(content)):
        path.write_bytes(flipped_bit(content, place / len(content)))
        raised(RunError, "table.json is damaged or missing", files.read_json, path, dict)
    path.write_bytes(content)
    lines = (tmp_path / sums.NAME).read_text().splitlines()
    assert len(lines) == 2 and lines[1] == f"{sums.sha256_of(path)}  table.json", "as sha256sum writes it"
    files.keep(path, content)
    assert (tmp_path / sums.NAME).read_text().splitlines() == lines


@pytest.mark.parametrize("torn", [b"0123", b"0123\n", b"\xff\xfe"])
def test_a_torn_line_of_hashes_spoils_no_other(tmp_path, torn):
    path = tmp_path / "a"
    (tmp_path / sums.NAME).write_bytes(torn)
    files.keep(path, b"content")
    assert sums.checked(path) == b"content"


def test_what_was_not_recorded_is_damaged(tmp_path):
    path = tmp_path / "a"
    path.write_bytes(b"content")
    raised(sums.Changed, "has no SHA-256 of it", sums.check, path)
    raised(sums.Changed, "names no file", sums.check_all, tmp_path)
    sums.record_all(tmp_path)
    sums.check_all(tmp_path)
    path.unlink()
    raised(FileNotFoundError, "", sums.check_all, tmp_path)


def test_every_flipped_bit_of_a_sealed_line_is_named():
    line = json.dumps({"kind": "saved", "epoch": 1, "name": "é \u2028"}, ensure_ascii=False)
    sealed = sums.sealed(line)
    assert sums.opened(sealed) == line and json.loads(sealed)["epoch"] == 1
    content = sealed.encode()
    for place in range(8 * len(content)):
        changed = bytearray(content)
        changed[place // 8] ^= 1 << place % 8
        raised(ValueError, "", lambda text: sums.opened(text.decode()), bytes(changed))
    raised(sums.Changed, "no SHA-256 of its own", sums.opened, line)
