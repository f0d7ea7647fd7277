"""The app's own HTML as templates, and `values`, the only way to insert text into them.

Gradio fills a template by Handlebars and then evaluates the result as a JavaScript template
literal. Handlebars does not escape `${` and backslashes, which would run as code. So `values`
escapes text here, and templates insert it unescaped by `{{{ }}}`.
"""

from collections.abc import Sequence
from html import escape

import gradio as gr

from adapop.paths import ASSETS

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


def listed(lines: Sequence[str], kind: str = "calm") -> dict:
    """The values of `LINES`: sentences in a box, or no box. kind: calm, warn, bad or log."""
    return values({"kind": kind if lines else "hidden", "lines": lines})


def lines(elem_id: str | None, value: dict | None = None, **options) -> gr.HTML:
    """Lays out a box of sentences. value: of `listed`; without it, there is no box yet."""
    return gr.HTML(value or listed([]), html_template=LINES, elem_id=elem_id, **options)


HEADER, MODE, STRIP, LINES = map(template, ("header", "mode", "strip", "lines"))
