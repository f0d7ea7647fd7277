"""The app's own HTML as templates, and `values`, the only way in which text gets into them.

Gradio fills a template by Handlebars and then evaluates the result as a JavaScript template literal. Handlebars'
own escaping leaves `${` and backslashes alone, which would run as code; so text is escaped here, by `values`, and
put in unescaped by `{{{ }}}`.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

CODE = str.maketrans({"\\": "&#92;", "$": "&#36;", "`": "&#96;", "{": "&#123;", "}": "&#125;"})


def values(content):
    """The same dicts and lists with every text escaped for the templates: it is shown as typed, whatever it is."""
    if isinstance(content, dict):
        return {key: values(value) for key, value in content.items()}
    if isinstance(content, (list, tuple)):
        return [values(value) for value in content]
    return escape(content).translate(CODE) if isinstance(content, str) else content


def listed(lines: Sequence[str], kind: str = "calm") -> dict:
    """The values of `LINES`: sentences in a box. kind: calm, warn, bad, log, or hidden for no box at all."""
    return values({"kind": kind, "lines": lines})


HEADER = """
<div class="header"><h1>{{{value.title}}}</h1><p>{{{value.tagline}}}</p></div>
"""
MODE = """
<span class="pill" title="{{{value.why}}}">{{{value.mode}}}</span>
"""
STRIP = """
<div class="strip {{value.state}}" role="status" aria-live="polite">
  <span class="dot" aria-hidden="true"></span><b>{{{value.label}}}</b><span class="detail">{{{value.detail}}}</span>
  <div class="track" aria-hidden="true"><div class="fill" style="width:{{value.percent}}%"></div></div>
</div>
"""
TOUR = """
{{#if value.title}}
<p class="count">{{value.number}} of {{value.count}}</p>
<div class="told"><div aria-live="polite"><h2 tabindex="-1">{{{value.title}}}</h2>
<p>{{{value.first}}}</p></div>
{{#if value.rows}}<table><thead><tr>{{#each value.head}}<th scope="col">{{{this}}}</th>{{/each}}</tr></thead>
<tbody>{{#each value.rows}}<tr>{{#each this}}<td>{{{this}}}</td>{{/each}}</tr>{{/each}}</tbody></table>{{/if}}
<div aria-live="polite">{{#each value.more}}<p>{{{this}}}</p>{{/each}}</div>
{{#if value.awaited}}<p class="awaited"><progress value="{{value.percent}}" max="100"></progress>
{{{value.awaited}}}</p>{{/if}}</div>
<style>#{{value.ring}} { outline: 3px solid #e07a1f !important; outline-offset: 3px; border-radius: 8px; }</style>
{{/if}}
"""
LINES = """
<ul class="lines {{value.kind}}">{{#each value.lines}}<li>{{{this}}}</li>{{/each}}</ul>
"""
# in one line: white space between the pieces would show
PIECES = (
    '<p class="text {{#if this.right}}right{{/if}}">{{#each this.parts}}{{#if this.gold}}<mark>{{{this.text}}}</mark>'
    "{{else}}{{{this.text}}}{{/if}}{{/each}}</p>"
)
ANSWERS = (
    """
{{#if value.original}}
<div class="answers">
  {{#each value.sides}}
  <section class="answer {{this.kind}}" aria-label="{{{this.name}}} model">
    <h3><span class="mark" aria-hidden="true">{{{this.mark}}}</span> {{{this.name}}}</h3>
    """
    + PIECES
    + """
    {{#if this.verdict}}<p class="verdict {{this.verdict_kind}}">{{{this.verdict}}}</p>{{/if}}
    {{#if this.measured}}<dl>
      <div><dt>gold rank</dt><dd>{{this.rank}}</dd></div>
      <div><dt>log-probability</dt><dd>{{{this.logprob}}}</dd></div>
      <div><dt>probability</dt><dd>{{{this.probability}}}</dd></div>
    </dl>{{/if}}
    <h4>Likeliest next tokens</h4>
    <ol class="top">{{#each this.top}}<li><span>{{{this.token}}}</span>
      <span class="bar"><i style="width:{{this.percent}}%"></i></span><span>{{{this.shown}}}</span></li>{{/each}}</ol>
  </section>
  {{/each}}
</div>
<details><summary>The exact prompt both models saw</summary><pre>{{{value.sent}}}</pre></details>
{{else}}<p class="empty">{{{value.empty}}}</p>{{/if}}
"""
)
