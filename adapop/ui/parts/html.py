"""The app's own HTML as templates, and `values`, the only way to insert text into them.

Gradio fills a template by Handlebars and then evaluates the result as a JavaScript template
literal. Handlebars does not escape `${` and backslashes, which would run as code. So `values`
escapes text here, and templates insert it unescaped by `{{{ }}}`.
"""

import re
from collections.abc import Sequence
from html import escape

import gradio as gr

from adapop.paths import ASSETS

SCRIPTS = "page", "fields", "story"  # our JavaScript: one script, in this order
# at the end of the page: what it reads exists there. Gradio puts the page's own script into its
# head only once its files have come
EARLY = b"""const own = document.createRange().createContextualFragment(gradio_config.head);
document.head.append(own);
adapop.early();"""
CODE = str.maketrans({"\\": "&#92;", "$": "&#36;", "`": "&#96;", "{": "&#123;", "}": "&#125;"})


def values(content):
    """The same dicts and lists with every text escaped for templates, to appear as typed."""
    if isinstance(content, dict):
        return {key: values(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [values(value) for value in content]
    return escape(content).translate(CODE) if isinstance(content, str) else content


def template(name: str) -> str:
    """One of the templates in `assets/templates`."""
    return (ASSETS / "templates" / f"{name}.html").read_text("utf-8")


def script() -> str:
    """The page's own JavaScript, for its head. It gives `window.adapop`, whose functions the
    elements' `js_on_load` and the events' `js` call; it runs once, however often it is put in."""
    texts = "\n".join((ASSETS / f"{name}.js").read_text("utf-8") for name in SCRIPTS)
    return f"<script>window.adapop ??= (() => {{\n{texts}\nreturn adapop;\n}})();</script>"


def with_story(page: bytes) -> bytes:
    """The page with colours and a script that show the Story before Gradio has loaded."""
    before, end, after = page.rpartition(b"</body>")
    theme = re.search(rb'"theme_hash": ?"(\w+)"', page)
    colours = b'<link rel="stylesheet" href="./theme.css?v=%s">' % theme[1] if theme else b""
    return before + colours + b"<script>" + EARLY + b"</script>" + end + after if end else page


def on_load(name: str) -> str:
    """The `js_on_load` of a gr.HTML that one of the script's functions serves."""
    return f"adapop.{name}(element, props, trigger, watch)"


def drawn(value: object, css: str, elem_id: str, name: str) -> gr.HTML:
    """Lays out an element that one of the script's functions fills, with every text as text."""
    shape = dict(html_template=f'<div class="{css}"></div>', js_on_load=on_load(name))
    return gr.HTML(value, elem_id=elem_id, **shape)


def listed(lines: Sequence[str], kind: str = "calm") -> dict:
    """The values of `LINES`: sentences in a box, or no box. kind: calm, warn, bad or log."""
    return values({"kind": kind if lines else "hidden", "lines": lines})


def lines(elem_id: str | None, value: dict | None = None, **options) -> gr.HTML:
    """Lays out a box of sentences. value: of `listed`; without it, there is no box yet."""
    return gr.HTML(value or listed([]), html_template=LINES, elem_id=elem_id, **options)


HEADER, MODE, STRIP, LINES = map(template, ("header", "mode", "strip", "lines"))
