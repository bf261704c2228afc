"""Times functions side by side in one process, so that whatever else runs hits all."""

import math
import random
import statistics
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

# How long the calls between two readings of the clock take, in seconds.
BETWEEN = 0.02
# The same of whole training steps.
BETWEEN_STEPS = 0.08
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
    read(value)
    return (time.perf_counter() - start) / calls


def read(value: Any) -> float:
    """Returns one number of the last array in a structure, of any framework.

    A device may still be at work; only what is read has been computed.
    """
    while isinstance(value, dict | list | tuple):
        *_, value = value.values() if isinstance(value, dict) else value
    return float(value[(0,) * value.ndim] if np.ndim(value) else value)


def quartiles(times: Mapping[str, list[float]], name: str, base: str) -> list[float]:
    """Returns the quartiles of the ratio of two functions, round by round."""
    ratios = [a / b for a, b in zip(times[name], times[base], strict=True)]
    return statistics.quantiles(ratios, n=4)


def cell(ratios: list[float]) -> str:
    """Returns the median with the other quartiles, for a table."""
    low, middle, high = ratios
    return f"{middle:.2f} [{low:.2f}, {high:.2f}]"


# Of the table whose rows `rows` measures.
HEAD = (
    "| step | checks | ms | ratio [quartiles] | first call, s | ratio |\n"
    "|---|---|---|---|---|---|"
)


def rows(
    step: str,
    make: Callable[[str], Callable[[], Any]],
    variants: Sequence[str],
    rounds: int,
    builds: int,
    per_call: int = 1,
) -> Iterator[str]:
    """Measures the variants of a step, and yields a row of the table for each.

    Args:
      step: The step's name.
      make: Returns the function of a variant.
      variants: Their names; the others are divided by the first.
      rounds: Number of rounds.
      builds: So often all variants are made, and their first calls are timed.
      per_call: Number of steps in a call.
    """
    first: dict[str, list[float]] = {variant: [] for variant in variants}
    for _ in range(builds):
        runs = {}
        for variant in random.sample(variants, len(variants)):
            runs[variant] = make(variant)
            first[variant].append(seconds(runs[variant], 1))
    times = side_by_side(runs, rounds, BETWEEN_STEPS, math.inf)
    base = variants[0]
    for variant in variants:
        milliseconds = 1e3 * statistics.median(times[variant]) / per_call
        ratio = "1" if variant == base else cell(quartiles(times, variant, base))
        called = statistics.median(first[variant])
        over = called / statistics.median(first[base])
        yield (
            f"| {step} | {variant} | {milliseconds:.2f} | {ratio} | {called:.2f} "
            f"| {over:.2f} |"
        )
