# ruff: noqa
# Written by `python -m tests.typing --write`.
from keras.metrics import (
    Metric as Metric,
    deserialize as deserialize,
    get as get,
    serialize as serialize,
)
