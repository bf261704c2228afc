"""The report as a web page: one file that loads nothing from anywhere."""

import dataclasses
import linecache
import os
import pathlib
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from tfsafe._report import explain, text as _text
from tfsafe._report.html import _drawing, _glance, _history, _sample, _suggestion
from tfsafe._report.html._drawing import coded, scrolling, sentence, text
from tfsafe._report.html._glance import listed
from tfsafe._report.html._style import SCOPED, STYLE
from tfsafe._report.records import FindingFields, Link, Sample, Site, TensorStats


class Context(NamedTuple):
    """What a page says about the run.

    Attributes:
      facts: Names and values, such as the versions.
      layers: Name, class and health of each layer of the model, in its order: `finite`,
        `first`, `reached` or `untouched`.
      sample: The row of the batch that failed.
      past: Numbers of the steps before, by what they are.
    """

    facts: Mapping[str, str] = {}
    layers: Sequence[tuple[str, str, str]] = ()
    sample: Sample | None = None
    past: Mapping[str, Sequence[float]] = {}


_NOTHING = Context()
# Lines of source shown before and after the line of the finding.
_AROUND = 4
# The policy makes the browser load nothing.
_HEAD = """<!DOCTYPE html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta http-equiv="Content-Security-Policy"
  content="default-src 'none'; style-src 'unsafe-inline'">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<main>
"""
_FOOT = "</main>\n</body>\n</html>\n"
# Letters of a picture, the class that draws them, and their name.
_LEGEND = [
    ("123456789", "positive level8", "Positive"),
    ("abcdefghi", "negative level8", "Negative"),
    ("0", "zero", "Zero"),
    ("N", "nan", "NaN"),
    ("P", "posinf", "+Inf"),
    ("M", "neginf", "-Inf"),
]


def write(page: str, path: str | os.PathLike[str] | None) -> str:
    """Writes a page to a file, if one is named, in a new folder if need be.

    Returns:
      The page.

    Raises:
      TypeError: If `path` is not a path.
    """
    if path is not None:
        if not isinstance(path, str | os.PathLike):
            raise TypeError(
                "`path` must be that of a file, such as 'finding.html', or None for "
                f"the page alone. Received: path={path!r}."
            )
        pathlib.Path(path).parent.mkdir(parents=True, exist_ok=True)
        # A file name on Linux may hold bytes that form no character.
        pathlib.Path(path).write_text(page, encoding="utf-8", errors="replace")
    return page


def of_findings(
    findings: Sequence[FindingFields],
    message: str,
    title: str = "",
    context: Context = _NOTHING,
) -> str:
    """Returns the page of an error.

    Args:
      findings: First cause first; may be empty.
      message: The error's text.
      title: Heading; the first finding if empty.
      context: What is known of the run.
    """
    head = explain.first_line(findings[0]) if findings else message.partition("\n")[0]
    return _page(title or head, _findings(findings, message, title, head, context))


def fragment_of_findings(
    findings: Sequence[FindingFields], message: str, context: Context = _NOTHING
) -> str:
    """Returns findings as a part of a page, with its own style, for a notebook."""
    head = explain.first_line(findings[0]) if findings else message.partition("\n")[0]
    return _fragment(_findings(findings, message, "", head, context))


def fragment_of_table(
    title: str, rows: Sequence[Sequence[str]], text_below: str = ""
) -> str:
    """Returns a table as a part of a page, with its own style, for a notebook."""
    # Numbers stand at the right of their column, sentences at the left.
    styles = [
        ' class="words"' * any(" " in each and each.upper() != each for each in column)
        for column in zip(*rows[1:], strict=True)
    ] or [""] * len(rows[0])
    lines = []
    for tag, row in zip(["th", *["td"] * len(rows)], rows, strict=False):
        cells = zip(styles, map(text, row), strict=True)
        line = "".join(f"<{tag}{style}>{cell}</{tag}>" for style, cell in cells)
        lines.append(f"<tr>{line}</tr>")
    below = [scrolling(text(text_below), "message")] if text_below else []
    return _fragment([f"<h1>{coded(title)}</h1><table>", *lines, "</table>", *below])


def _fragment(body: Sequence[str]) -> str:
    inner = "\n".join(body)
    return f'<div class="tfsafe">\n<style>\n{SCOPED}</style>\n{inner}\n</div>'


def _findings(
    findings: Sequence[FindingFields],
    message: str,
    title: str,
    head: str,
    context: Context,
) -> list[str]:
    body = [f'<h1 class="nonfinite">{coded(title or head)}</h1>']
    if findings:
        body += [f'<p class="lead">{coded(head)}</p>'] if title else []
        body += _article(
            findings[0],
            2,
            _glance.rows(findings[0], message, context.sample),
            _around(context),
        )
    if len(findings) > 1:
        body.append(f"<h2>{_text.counted(len(findings) - 1, 'further place')}</h2>")
    for each in findings[1:]:
        summary = f"<summary>{coded(explain.first_line(each))}</summary>"
        body += ["<details>", summary, *_article(each, 3), "</details>"]
    if context.facts:
        body += ["<h2>The run</h2>", *listed(context.facts.items())]
    body += ["<details>", "<summary>The message as text</summary>"]
    return [*body, scrolling(text(message), "message"), "</details>"]


def _around(context: Context) -> dict[str, list[str]]:
    """Returns the sections of a page about the step: sample, steps before, layers."""
    sections = {}
    if context.sample is not None:
        sections["Which sample"] = _sample.drawn(context.sample)
    if context.past:
        sections["The steps before"] = _history.drawn(context.past)
    if context.layers:
        sections["The model"] = _map(context.layers)
    return sections


_HEALTH = {
    "finite": "finite",
    "first": "first non-finite value",
    "reached": "reached by it",
    "untouched": "not reached",
}


def _map(layers: Sequence[tuple[str, str, str]]) -> list[str]:
    """Shows the layers in the order of the model, coloured by health."""
    chips = [
        f'<li class="{health}" title="{text(f"{kind}: {_HEALTH[health]}")}">'
        f"{text(name)}</li>"
        for name, kind, health in layers
    ]
    met = {health for *_, health in layers}
    keys = [
        f'<li class="{health}">{_text.capital(words)}</li>'
        for health, words in _HEALTH.items()
        if health in met
    ]
    return [
        '<ol class="map">',
        *chips,
        "</ol>",
        '<p class="note">Colours:</p>',
        f'<ul class="map">{"".join(keys)}</ul>',
    ]


def of_tensors(tensors: Sequence[TensorStats], title: str = "") -> str:
    """Returns the page of some tensors; without a title it counts them."""
    title = title or _text.counted(len(tensors), "tensor") or "No tensors"
    return _page(title, [f"<h1>{coded(title)}</h1>", *_tensors(tensors)])


def _page(title: str, body: Sequence[str]) -> str:
    head = _HEAD.format(title=text(title.replace("`", "")), style=STYLE)
    return head + "\n".join(body) + "\n" + _FOOT


def _article(
    finding: FindingFields,
    level: int,
    glance: Sequence[str] = (),
    more: Mapping[str, list[str]] | None = None,
) -> list[str]:
    sections = {
        "Where": _where(finding),
        "Why": _why(finding),
        "What to do": _suggestion.drawn(finding),
        **(more or {}),
        "How it spread": _path(finding),
    }
    what = explain.what(finding)
    parts = [
        "<article>",
        *([f'<p class="what">{text(_text.capital(what))}</p>'] if what else []),
    ]
    parts += glance
    for heading, section in sections.items():
        if section:
            parts += [f"<h{level}>{heading}</h{level}>", *section]
    return [*parts, "</article>"]


def _where(finding: FindingFields) -> list[str]:
    if finding.site is None and finding.origin:
        return []
    parts = []
    if finding.site is None:
        name = text(finding.op_name or finding.op_type)
        parts.append(f"<p>No line of yours; operation <code>{name}</code></p>")
    else:
        site = finding.site
        file = f"<code>{text(site.place)}</code>"
        parts.append(f"<p>{file} in <code>{text(site.function)}</code></p>")
        parts += _source(site)
    around = explain.place_of(finding)
    return parts + ([f'<p class="note">{sentence(around)}</p>'] if around else [])


def _source(site: Site) -> list[str]:
    """Shows the line with those around it, if the file has not changed since."""
    if not site.source:
        return []
    lines = linecache.getlines(site.path)
    if not 0 < site.line <= len(lines) or lines[site.line - 1].strip() != site.source:
        shown = {site.line: site.source}
    else:
        first, last = max(site.line - _AROUND, 1), site.line + _AROUND
        shown = dict(enumerate(lines[first - 1 : last], first))
        for edge in (min, max):
            while not shown[edge(shown)].strip():
                del shown[edge(shown)]
    rows = []
    for number, line in shown.items():
        tag = "mark" if number == site.line else "span"
        code = text(line.rstrip()) or " "
        rows.append(f'<{tag}><b aria-hidden="true">{number:>5}</b>  {code}</{tag}>')
    return [scrolling("".join(rows), "source")]


def _why(finding: FindingFields) -> list[str]:
    parts = [f"<p>{sentence(finding.cause)}</p>"] if finding.cause else []
    output = finding.output
    if output is not None:
        name = output.name or finding.op_type or finding.origin
        output = dataclasses.replace(output, name=name)
    if finding.inputs or output:
        made = "came out" if finding.op_type else "given"
        parts += _tensors(finding.inputs, output, finding.index, made)
    return parts


def _tensors(
    tensors: Sequence[TensorStats],
    output: TensorStats | None = None,
    index: Sequence[int] | None = None,
    made: str = "",
) -> list[str]:
    note = "" if output is None else "went in"
    figures = [_figure(each, note) for each in tensors]
    if output is not None:
        figures.append(_figure(output, made, index))
    shown = [each.picture for each in [*tensors, output] if each and each.picture]
    letters = {letter for each in shown for row in each.rows for letter in row}
    keys = [
        f'<li><svg class="key" viewBox="0 0 10 10" aria-hidden="true">'
        f'<rect class="{style}" width="10" height="10"/></svg> {name}</li>'
        for those, style, name in _LEGEND
        if letters.intersection(those)
    ]
    legend = [f'<ul class="legend">{"".join(keys)}</ul>'] if keys else []
    return ['<div class="tensors">', *figures, "</div>", *legend]


def _figure(stats: TensorStats, note: str, index: Sequence[int] | None = None) -> str:
    picture = stats.picture
    notes = [note] if note else []
    if picture is not None and picture.high > picture.low:
        notes.append(f"depth of colour: 1e{picture.low:.0f} to 1e{picture.high:.0f}")
    style = "" if index is None else ' class="out"'
    return (
        f"<figure{style}>{_drawing.picture(stats, index)}<figcaption>"
        f"<strong>{coded(stats.name)}</strong> {text(explain.kind_of(stats))}"
        f"<span>{text(_text.capital(explain.figures(stats)))}</span>"
        f'<span class="note">{_text.capital("; ".join(notes))}</span>'
        "</figcaption></figure>"
    )


def _path(finding: FindingFields) -> list[str]:
    """Shows the propagation path as a graph, and as a list for screen readers."""
    if not finding.chain:
        return []
    steps = [_step(link) for link in explain.folded(finding.chain)]
    return [
        _drawing.chain(finding, finding.chain),
        "<details>",
        "<summary>The steps as a list</summary>",
        f"<ol>{''.join(steps)}</ol>",
        "</details>",
    ]


def _step(link: Link) -> str:
    words = f"<strong>{coded(explain.name_of(link))}</strong>: {text(link.kind)}"
    if link.size:
        words += f" in {explain.amount_of(link)} values"
    if link.site is None:
        return f"<li>{words}</li>"
    place = f"<code>{text(link.site.place)}</code>"
    return f"<li>{words}, {place} <code>{text(link.site.source)}</code></li>"
