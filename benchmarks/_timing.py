"""Times functions side by side in one process, so that whatever else runs hits all."""

import random
import statistics
import time
from collections.abc import Callable, Mapping
from typing import Any

import tensorflow as tf

# How long the calls between two readings of the clock take, in seconds.
BETWEEN = 0.02
# No new round begins after this many seconds, once there are three.
AT_MOST = 5.0


def side_by_side(
    runs: Mapping[str, Callable[[], Any]],
    rounds: int,
    between: float = BETWEEN,
    at_most: float = AT_MOST,
) -> dict[str, list[float]]:
    """Returns the seconds of one call of each function, for each round.

    In a round each function runs a few times in a row, as often as the others, in an
    order drawn again.

    Args:
      runs: The functions, by name.
      rounds: Number of rounds.
      between: So long the calls between two readings of the clock take, in seconds.
      at_most: No new round begins after this many seconds, once there are three.
    """
    for run in runs.values():
        seconds(run, 1)
    calls = max(1, round(between / max(seconds(run, 1) for run in runs.values())))
    times: dict[str, list[float]] = {name: [] for name in runs}
    start = time.perf_counter()
    for round_ in range(rounds):
        if round_ >= 3 and time.perf_counter() > start + at_most:
            break
        for name in random.sample(list(runs), len(runs)):
            times[name].append(seconds(runs[name], calls))
    return times


def seconds(run: Callable[[], Any], calls: int) -> float:
    start = time.perf_counter()
    for _ in range(calls):
        value = run()
    # A device may still be at work; only what is read has been computed.
    tf.reshape(tf.nest.flatten(value)[-1], [-1])[:1].numpy()
    return (time.perf_counter() - start) / calls


def quartiles(times: Mapping[str, list[float]], name: str, base: str) -> list[float]:
    """Returns the quartiles of the ratio of two functions, round by round."""
    ratios = [a / b for a, b in zip(times[name], times[base], strict=True)]
    return statistics.quantiles(ratios, n=4)


def cell(ratios: list[float]) -> str:
    """Returns the median with the other quartiles, for a table."""
    low, middle, high = ratios
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"
