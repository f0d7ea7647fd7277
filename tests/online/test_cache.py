import sqlite3

import pytest

from adapop.online.cache import FILE, Cache
from edited import flipped_bit


@pytest.mark.parametrize("column", ["value", "date", "sha256"])
def test_a_flipped_bit_of_a_reply_makes_it_missing_and_the_log_says_so(tmp_path, caplog, column):
    for place in range(8):
        name = f"key {place}"
        Cache(tmp_path).put({"score": [1234, "é"]}, name)
        with sqlite3.connect(tmp_path / FILE) as rows:
            where = f"WHERE key LIKE '%{name}%'"
            (text,) = rows.execute(f"SELECT {column} FROM replies {where}").fetchone()
            changed = flipped_bit(text.encode(), place / 8)
            rows.execute(f"UPDATE replies SET {column} = CAST(? AS TEXT) {where}", (changed,))
        caplog.clear()
        assert Cache(tmp_path).get(name) is None and Cache(tmp_path).get_all([name]) == {}
        assert "damaged reply" in caplog.text
        Cache(tmp_path).put_all({name: [5]})
        assert Cache(tmp_path).get(name).value == [5]


def test_a_reply_of_another_key_is_no_reply(tmp_path):
    """As after a flipped bit in the file's index, which then leads to another row."""
    cache = Cache(tmp_path)
    cache.put("of one", "one")
    cache.put("of two", "two")
    with sqlite3.connect(tmp_path / FILE) as rows:
        for key, aside in (("one", "aside"), ("two", "one"), ("aside", "two")):
            rows.execute("UPDATE replies SET key = ? WHERE key = ?", (f'["{aside}"]', f'["{key}"]'))
    assert [cache.get(name) for name in ("one", "two")] == [None, None]
