"""The newest Gradio 6 serves the page as the tested one does: only its public names are used."""

import os
import re
import subprocess
import sys
from importlib.metadata import Distribution

import pytest

from browsing import open_tab, says, start_run, state_is, visit
from serving import served

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def newest(tmp_path_factory) -> str:
    """A folder with the newest Gradio 6 and its client, before this environment's own in the path."""
    folder = tmp_path_factory.mktemp("newest")

    def install(*names: str) -> None:
        command = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--upgrade", "--target", folder, *names]
        done = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)
        if done.returncode and re.search(
            "connection|resolve|retries|timed out|No matching", done.stderr, re.IGNORECASE
        ):
            pytest.skip(f"the registry of packages cannot be reached: {done.stderr.strip()[-200:]}")
        assert done.returncode == 0, done.stderr

    install("gradio>=6.31,<7")
    (about,) = folder.glob("gradio-*.dist-info")
    needed = Distribution.at(about).requires or []
    install(*[one.partition(";")[0] for one in needed if one.startswith(("gradio-client", "hf-gradio"))])
    return str(folder)


def test_a_page_uploads_trains_and_asks_with_the_newest_gradio(browser, newest, tmp_path):
    path = os.pathsep.join([newest, os.environ.get("PYTHONPATH", "")])
    code = "import gradio, runpy; print(gradio.__file__); runpy.run_path('app.py', run_name='__main__')"
    with served(tmp_path / "runs", ("-c", code), PYTHONPATH=path) as app:
        assert any(line.startswith(newest) for line in app.output)
        with visit(browser, app.address.rstrip("/")) as page:
            says(page, "#notes", "Forget set: 256;")
            page.get_by_text("One pair").click()
            says(page, "#notes", "Both answers are Kubrick")
            start_run(page, epochs=1, measure_per_tier=4)
            state_is(page, "done")
            page.reload()
            state_is(page, "done")
            open_tab(page, "Probe")
            page.fill("#prompt textarea, #prompt input", "Who directed the film The Shining?")
            page.click("#ask")
            page.locator("#answers .answer").first.wait_for()
