import io
import sys
import time
import traceback

import pytest

from adapop.errors import AdaPopError
from adapop.ui.access import LONGEST, public_words
from adapop.ui.redaction import redact_logs

ID = "adapop-0123456789abcdef"
HUGE = 2_000_000
SOON_SECONDS = 2.0
SECRET = "Zanzibar-Quux"


def test_the_folder_of_a_run_is_in_no_error():
    for text, words in (
        (f"/home/me/.adapop/runs/{ID} is gone.", "RUN is gone."),
        (f"C:\\runs\\{ID}\\epoch-1 is damaged", "RUN\\epoch-1 is damaged"),
        (f"a/{ID}/b/{ID}/c and /{ID}.", "RUN/c and RUN."), ("and/or is no folder", "and/or is no folder")):  # fmt: skip
        assert public_words(AdaPopError(text)) == words


@pytest.mark.parametrize("path", ["/tmp/gradio/a/b.csv", "'/home/me/runs/sets/0123'", "(/srv/app.py)."])
def test_strangers_are_told_no_path_of_the_server(monkeypatch, path):
    error = AdaPopError(f"The disk is full: {path} could not be written.")
    assert path.strip("'().") in public_words(error)
    monkeypatch.setenv("ADAPOP_PUBLIC", "1")
    assert public_words(error) == "The disk is full: a file of the server could not be written."
    assert public_words(AdaPopError("and/or, https://a.b/c/d")) == "and/or, https://a.b/c/d"


def test_words_of_any_length_take_a_moment_and_are_cut_before_a_path():
    """One pattern over the whole text once took hours, and nothing else of the app worked meanwhile."""
    began = time.process_time()
    for text in ("a" * HUGE, "/a" * (HUGE // 2), "a " * (HUGE // 2)):
        assert len(public_words(AdaPopError(text))) <= LONGEST + 2
    assert time.process_time() - began < SOON_SECONDS
    assert public_words(AdaPopError("a " * (LONGEST // 2 - 5) + f"/home/{ID}")).endswith("a …")


def test_what_is_printed_has_neither_keys_nor_ids(monkeypatch):
    output = io.StringIO()
    monkeypatch.setattr(sys, "stderr", output)
    monkeypatch.setattr(sys, "stdout", io.StringIO())
    monkeypatch.setenv("JUDGE_API_KEY", SECRET)
    redact_logs()
    redact_logs()  # which changes nothing more
    try:
        raise ValueError(f"/home/runs/{ID}/log of {SECRET}, and a long-word-0123456789abcdef0")
    except ValueError:
        traceback.print_exc()
    printed = output.getvalue()
    assert ID not in printed and SECRET not in printed
    assert "/home/runs/RUN/log of JUDGE_API_KEY" in printed and "Traceback" in printed
    assert "long-word-0123456789abcdef0" in printed, "no id"
