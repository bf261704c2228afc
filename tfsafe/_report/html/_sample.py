"""Draws the row of the batch that failed: an image, a series, tokens or a table."""

from collections.abc import Collection, Sequence

from tfsafe._report.html._drawing import text
from tfsafe._report.records import Sample
from tfsafe._report.text import counted

_CELL, _WIDTH, _HEIGHT = 6, 480, 90
_SHADES = 8
_MARKED = ' class="nonfinite"'


def words_of(sample: Sample) -> str:
    """Names the row, and the part of it that is not finite or made it fail."""
    words = f"Row {sample.row} of {sample.name}"
    if sample.length is not None:
        if not sample.length:
            return f"{words} is empty"
        words += f", of {counted(sample.length, 'token')}"
    fault = "made the operation fail" if sample.is_finite else "not finite"
    return f"{words}: {sample.words} {fault}" if sample.words else words


def drawn(sample: Sample) -> list[str]:
    """Returns the elements of a page that show a sample."""
    words = words_of(sample)
    draw = {
        "image": _image, "series": _series, "table": _table, "tokens": _tokens,
    }[sample.kind]  # fmt: skip
    return [f"<p>{text(words)}</p>", *draw(sample, words)]


def _image(sample: Sample, words: str) -> list[str]:
    paths: dict[int, list[str]] = {}
    for y, row in enumerate(sample.cells):
        for x, shade in enumerate(row):
            level = round((shade or 0.0) * _SHADES)
            if level:
                cell = f"M{x * _CELL} {y * _CELL}h{_CELL}v{_CELL}h-{_CELL}z"
                paths.setdefault(level, []).append(cell)
    width, height = len(sample.cells[0]) * _CELL, len(sample.cells) * _CELL
    shapes = [
        f'<path class="shade level{level}" d="{"".join(cells)}"/>'
        for level, cells in sorted(paths.items())
    ]
    if sample.box:
        top, left, bottom, right = (each * _CELL for each in sample.box)
        shapes.append(
            f'<rect class="outline" x="{left}" y="{top}" width="{right - left}" '
            f'height="{bottom - top}"/>'
        )
    return [_svg(width, height, words, [_frame(width, height, "dark"), *shapes])]


def _series(sample: Sample, words: str) -> list[str]:
    known = [each for line in sample.cells for each in line if each is not None]
    low, high = min(known, default=0.0), max(known, default=0.0)
    count = max(len(line) for line in sample.cells)
    step = _WIDTH / max(count - 1, 1)
    shapes = [_frame(_WIDTH, _HEIGHT)]
    for line in sample.cells:
        path, pen = "", "M"
        for number, value in enumerate(line):
            x = number * step
            if value is None:
                shapes.append(f'<path class="gap" d="M{x:.4g} 0v{_HEIGHT}"/>')
                pen = "M"
                continue
            y = _HEIGHT * (1 - (value - low) / ((high - low) or 1.0))
            path += f"{pen}{x:.4g} {y:.4g}"
            pen = "L"
        shapes.append(f'<path class="line" d="{path or "M0 0"}"/>')
    if sample.mark >= 0:
        x = sample.mark * step
        shapes.append(f'<path class="gap" d="M{x:.4g} 0v{_HEIGHT}"/>')
    return [_svg(_WIDTH, _HEIGHT, words, shapes)]


def _table(sample: Sample, words: str) -> list[str]:
    del words
    names = sample.columns or [f"{column:.0f}" for column, _ in sample.cells]
    values = [
        "not finite" if value is None else f"{value:.4g}" for _, value in sample.cells
    ]
    marked = {i for i, (_, value) in enumerate(sample.cells) if value is None}
    return _columns("Column", names, values, marked | {sample.mark})


def _tokens(sample: Sample, words: str) -> list[str]:
    del words
    if not sample.length:
        return []
    places = [f"{place:.0f}" for place, _ in sample.cells]
    values = sample.columns or [
        "not finite" if value is None else f"{value:.6g}" for _, value in sample.cells
    ]
    return _columns("Token", places, values, {sample.mark})


def _columns(
    head: str, names: Sequence[str], values: Sequence[str], marked: Collection[int]
) -> list[str]:
    """Returns a table of two rows, with some columns marked."""
    heads = "".join(f"<th>{text(name)}</th>" for name in names)
    cells = "".join(
        f"<td{_MARKED if i in marked else ''}>{text(value)}</td>"
        for i, value in enumerate(values)
    )
    return [
        '<div class="wide" tabindex="0" role="region" aria-label="Columns">'
        f"<table><tr><th>{head}</th>{heads}</tr>"
        f"<tr><td>Value</td>{cells}</tr></table></div>"
    ]


def _frame(width: int, height: int, style: str = "frame") -> str:
    return f'<rect class="{style}" width="{width}" height="{height}"/>'


def _svg(width: int, height: int, words: str, shapes: list[str]) -> str:
    return (
        f'<svg class="sample" role="img" aria-label="{text(words)}" '
        f'viewBox="-2 -2 {width + 4} {height + 4}" width="{width + 4}" '
        f'height="{height + 4}">{"".join(shapes)}</svg>'
    )
