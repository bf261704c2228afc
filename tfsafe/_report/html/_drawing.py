"""Drawings of a report as inline SVG: tensors as pictures, the propagation path."""

import html
import math
from collections.abc import Sequence

from tfsafe._report import explain, text as _text
from tfsafe._report.records import (
    FindingFields,
    Link,
    Picture,
    TensorStats,
    drawn_shape,
)

# Largest width and height of a picture, and largest side of one of its cells.
_PICTURE = 300, 220
_CELL = 22
# Classes of the style sheet for the letters of a picture that are not numbers.
_NONFINITE = {"N": "nan", "P": "posinf", "M": "neginf"}

# The graph is as wide as a phone. Boxes of operations and of inputs, and the gaps.
_WIDTH, _NODE, _INPUT, _GAP, _DOTS = 360, 54, 46, 24, 18
# Largest width of a letter of the small print, and of a bold name.
_LETTER, _BOLD = 7.0, 9.0
_INPUTS = 3


def text(words: str) -> str:
    """Returns words as text in HTML."""
    return html.escape(words)


def sentence(words: str) -> str:
    """Returns words as HTML, with a capital unless they begin with code."""
    return coded(_text.capital(words))


def coded(words: str) -> str:
    """Formats the text between backticks as code."""
    parts = text(words).split("`")
    return "".join(
        f"<code>{part}</code>" if number % 2 else part
        for number, part in enumerate(parts)
    )


def scrolling(content: str, style: str) -> str:
    """Returns a block of code or text, in a style of the sheet, that scrolls."""
    # With the focus on the block, the arrow keys scroll it.
    label = "Source" if style == "source" else "Text"
    return (
        f'<pre class="{style}" tabindex="0" role="region" aria-label="{label}">'
        f"{content}</pre>"
    )


def picture(stats: TensorStats, index: Sequence[int] | None = None) -> str:
    """Draws a tensor.

    Args:
      stats: The tensor.
      index: Element that gets a ring.

    Returns:
      An SVG element; empty if the tensor has no picture.
    """
    if stats.picture is None:
        return ""
    rows = stats.picture.rows
    # Whole pixels: between cells of a fraction the background would show.
    width = max(1, min(_CELL, _PICTURE[0] // len(rows[0])))
    height = max(1, min(_CELL, _PICTURE[1] // len(rows)))
    total = len(rows[0]) * width, len(rows) * height
    label = f"Picture of {explain.kind_of(stats)}: {explain.figures(stats)}"
    drawn = [
        f'<svg class="picture" role="img" aria-label="{text(label)}" '
        f'viewBox="-4 -4 {total[0] + 8:.5g} {total[1] + 8:.5g}" '
        f'width="{total[0] + 8:.5g}" height="{total[1] + 8:.5g}">',
        f'<rect class="frame" width="{total[0]:.5g}" height="{total[1]:.5g}"/>',
        *_cells(stats.picture, width, height),
    ]
    if index is not None:
        drawn += _ring(*_cell_of(index, stats), width, height)
    return "\n".join([*drawn, "</svg>"])


def _cells(picture: Picture, width: float, height: float) -> list[str]:
    """Draws the cells, all of one letter as one path."""
    paths: dict[str, list[str]] = {}
    for y, row in enumerate(picture.rows):
        start = 0
        for x in range(1, len(row) + 1):
            if x == len(row) or row[x] != row[start]:
                move = f"M{start * width:.5g} {y * height:.5g}"
                run = f"h{(x - start) * width:.5g}v{height:.5g}H{start * width:.5g}z"
                paths.setdefault(row[start], []).append(move + run)
                start = x
    return [
        f'<path class="{_class_of(letter)}" d="{"".join(paths[letter])}"/>'
        for letter in sorted(paths)
        if letter != "0"
    ]


def _ring(x: int, y: int, width: float, height: float) -> list[str]:
    """Frames a cell, with a halo that shows on every colour."""
    return [
        f'<rect class="{style}" x="{x * width - 2:.5g}" y="{y * height - 2:.5g}" '
        f'width="{width + 4:.5g}" height="{height + 4:.5g}" rx="3"/>'
        for style in ("ring halo", "ring")
    ]


def _class_of(letter: str) -> str:
    if letter in _NONFINITE:
        return _NONFINITE[letter]
    is_positive = letter.isdigit()
    level = int(letter) if is_positive else ord(letter) - ord("a") + 1
    return f"{'positive' if is_positive else 'negative'} level{level}"


def _cell_of(index: Sequence[int], stats: TensorStats) -> tuple[int, int]:
    """Returns column and row of the cell in which an element is drawn."""
    shape = drawn_shape(stats.shape) or (1,)
    *outer, column = tuple(index or ())[: len(shape)] or (0,)
    row = 0
    for size, each in zip(shape, outer, strict=False):
        row = row * size + each
    rows = stats.picture.rows if stats.picture else ("",)
    # The last cell that begins at the element or before it.
    x = ((column + 1) * len(rows[0]) - 1) // shape[-1]
    return x, ((row + 1) * len(rows) - 1) // math.prod(shape[:-1])


def chain(finding: FindingFields, links: Sequence[Link]) -> str:
    """Draws the propagation path, the inputs of the first operation on top."""
    kept, omitted = _text.middle_out(explain.folded(links))
    inputs = finding.inputs[:_INPUTS]
    drawn = _inputs(inputs)
    top = 1 + (_INPUT + _GAP if inputs else 0)
    for number, link in enumerate(kept):
        if number:
            drawn.append(_arrow(_WIDTH / 2, top))
        if omitted and number == len(kept) // 2:
            words = f"{omitted} more steps"
            drawn.append(_words(_WIDTH / 2, top + 13, words, "small middle"))
            top += _DOTS + _GAP
            drawn.append(_arrow(_WIDTH / 2, top))
        drawn += _node(link, top, _style_of(number, link))
        top += _NODE + _GAP
    label = f"{explain.first_line(finding)} {_path_text(links)}"
    return "\n".join([
        f'<svg class="chain" role="img" aria-label="{text(label)}" '
        f'viewBox="0 0 {_WIDTH} {top - _GAP + 1}">',
        *drawn,
        "</svg>",
    ])


def _path_text(links: Sequence[Link]) -> str:
    steps = " to ".join(explain.name_of(link) for link in explain.folded(links))
    return f"From {steps}." if len(links) > 1 else ""


def _inputs(inputs: Sequence[TensorStats]) -> list[str]:
    drawn = []
    for number, stats in enumerate(inputs):
        width = (_WIDTH - 2 - 8 * (len(inputs) - 1)) / len(inputs)
        left = 1 + number * (width + 8)
        tooltip = f"{stats.name}: {explain.figures(stats)}"
        drawn += [
            f"<g><title>{text(tooltip)}</title>",
            _box(left, 1, width, _INPUT, "node input"),
            _words(left + 10, 20, _cut(stats.name, width, _BOLD), "op"),
            _words(left + 10, 37, _cut(explain.figures(stats), width), "small"),
            "</g>",
            _arrow(left + width / 2, 1 + _INPUT + _GAP),
        ]
    return drawn


def _node(link: Link, top: float, style: str) -> list[str]:
    place = explain.short_place(link) or explain.kind_of(link)
    source = link.site.source if link.site else ""
    amount = ", ".join(part for part in (link.kind, explain.amount_of(link)) if part)
    name, room = explain.name_of(link), _WIDTH - 12 - len(amount) * 7.5
    # A name that does not fit next to the amount has the first line to itself.
    fits = _cut(name, room, _BOLD) == name.replace("`", "")
    top_room, bottom_room = (room, _WIDTH - 2) if fits else (_WIDTH - 2, room)
    return [
        f"<g><title>{text(' '.join(part for part in (place, source) if part))}</title>",
        _box(1, top, _WIDTH - 2, _NODE, style),
        _words(13, top + 22, _cut_path(name, top_room), "op"),
        _words(_WIDTH - 13, top + (22 if fits else 42), amount, "nonfinite end"),
        _words(13, top + 42, _cut(f"{place}  {source}", bottom_room), "small"),
        "</g>",
    ]


def _style_of(number: int, link: Link) -> str:
    if number == 0:
        return "node first"
    return "node result" if link.origin else "node"


def _box(left: float, top: float, width: float, height: float, style: str) -> str:
    return (
        f'<rect class="{style}" x="{left:.5g}" y="{top:.5g}" width="{width:.5g}" '
        f'height="{height:.5g}" rx="7"/>'
    )


def _arrow(x: float, bottom: float) -> str:
    """Draws an arrow that ends at `bottom`, one gap long."""
    start, end = bottom - _GAP, bottom - 2
    return f'<path class="arrow" d="M{x:.5g} {start:.5g}V{end:.5g}m-4 -6l4 6l4 -6"/>'


def _words(x: float, y: float, words: str, style: str) -> str:
    return f'<text class="{style}" x="{x:.5g}" y="{y:.5g}">{text(words)}</text>'


def _cut_path(name: str, width: float) -> str:
    """Cuts the outer layers off a path that does not fit, else the end."""
    name = name.replace("`", "")
    words, _, path = name.rpartition(" ")
    parts = path.split("/")
    shown = name
    while len(parts) > 1 and _cut(shown, width, _BOLD) != shown:
        del parts[0]
        shown = f"{words} \u2026/{'/'.join(parts)}".lstrip()
    return _cut(shown, width, _BOLD)


def _cut(words: str, width: float, letter: float = _LETTER) -> str:
    """Cuts words to what fits into a box, where names stand without backticks."""
    words = words.replace("`", "")
    room = max(2, int((width - 22) / letter))
    return words if len(words) <= room else words[: room - 1] + "\u2026"
