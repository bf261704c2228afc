"""Draws the numbers of the steps before a failure as lines."""

import math
from collections.abc import Mapping, Sequence

from tfsafe._report.html._drawing import text
from tfsafe._report.text import capital

_WIDTH, _HEIGHT, _EDGE = 220, 44, 3
# Beyond this ratio of the largest to the smallest, logarithms are drawn.
_WIDE = 100.0


def drawn(past: Mapping[str, Sequence[float]]) -> list[str]:
    """Returns the elements of a page that show the steps before a failure.

    Args:
      past: What was counted, and its values, oldest first.
    """
    if not past:
        return []
    return ['<div class="past">', *map(_figure, past, past.values()), "</div>"]


def _figure(name: str, values: Sequence[float]) -> str:
    ends = f"{values[0]:.4g} to {values[-1]:.4g}"
    words = f"{capital(name)} of {len(values)} steps, {ends}"
    return (
        f'<figure><svg class="sample" role="img" aria-label="{text(words)}" '
        f'viewBox="0 0 {_WIDTH} {_HEIGHT}" width="{_WIDTH}" height="{_HEIGHT}">'
        f'<path class="line" d="{_path(values)}"/></svg>'
        f"<figcaption><strong>{text(capital(name))}</strong> {ends}</figcaption>"
        "</figure>"
    )


def _path(values: Sequence[float]) -> str:
    low, high = min(values), max(values)
    if low > 0 and high > _WIDE * low:
        values = [math.log(each) for each in values]
        low, high = min(values), max(values)
    step = (_WIDTH - 2 * _EDGE) / max(len(values) - 1, 1)
    room = (_HEIGHT - 2 * _EDGE) / ((high - low) or 1.0)
    points = [
        f"{_EDGE + i * step:.4g} {_HEIGHT - _EDGE - (each - low) * room:.4g}"
        for i, each in enumerate(values)
    ]
    return "M" + "L".join(points)
