"""Chooses few of many combinations, so that each pair of values occurs in one."""

import itertools
from collections.abc import Hashable, Sequence


def pairwise(combinations: Sequence[Sequence[Hashable]]) -> list[int]:
    """Returns the indices of combinations that show every pair which occurs.

    Args:
      combinations: Values of the same parameters each. Earlier ones are preferred.

    Examples:

    >>> every = list(itertools.product("ab", "12", "xy"))
    >>> ["".join(every[i]) for i in pairwise(every)]
    ['a1x', 'a2y', 'b1y', 'b2x']
    """
    left = {i: _pairs(each) for i, each in enumerate(combinations)}
    chosen = []
    while left:
        # The first of those with the most pairs that none of the chosen has.
        best = max(left, key=lambda i: len(left[i]))
        shown = left.pop(best)
        if shown:
            chosen.append(best)
        left = {i: pairs for i, each in left.items() if (pairs := each - shown)}
    return sorted(chosen)


def _pairs(values: Sequence[Hashable]) -> set[Hashable]:
    """Returns each pair of values with their places; a single value is its own."""
    placed = list(enumerate(values))
    return set(itertools.combinations(placed, min(2, len(placed))))
