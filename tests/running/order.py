"""Shuffles the cases of each file, by a seed that is printed: `--order-seed N`."""

import itertools
import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--order-seed",
        type=int,
        help="run the cases of each file in the order that this number chooses",
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.getoption("order_seed")
    return [] if seed is None else [f"order of the cases: --order-seed {seed}"]


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(
    config: pytest.Config, items: list[pytest.Item]
) -> None:
    seed = config.getoption("order_seed")
    if seed is None:
        return
    files = [list(group) for _, group in itertools.groupby(items, lambda it: it.path)]
    chance = random.Random(seed)
    chance.shuffle(files)
    for cases in files:
        chance.shuffle(cases)
    items[:] = itertools.chain.from_iterable(files)
