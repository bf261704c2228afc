"""Chance in the tests, by one seed that is printed: `--order-seed N`.

It shuffles the cases of each file, and Keras draws the weights of every case from it
(from 0 where the option is not given), whatever ran before.
"""

import itertools
import random

import pytest


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption(
        "--order-seed",
        type=int,
        help="shuffle the cases of each file, and draw weights, by this",
    )


def pytest_report_header(config: pytest.Config) -> list[str]:
    seed = config.getoption("order_seed")
    return [] if seed is None else [f"order and chance: --order-seed {seed}"]


def _seed(config: pytest.Config) -> None:
    # Keras takes the seeds of its initializers from there. Not TensorFlow's seed, which
    # empties the caches of its kernels when it is set.
    random.seed(config.getoption("order_seed") or 0)


def pytest_collectstart(collector: pytest.Collector) -> None:
    _seed(collector.config)


@pytest.hookimpl(tryfirst=True)
def pytest_runtest_setup(item: pytest.Item) -> None:
    _seed(item.config)


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
