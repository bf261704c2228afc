# ruff: noqa
# Written by `python -m tests.typing --write`.
from keras.losses import (
    Circle as Circle,
    Loss as Loss,
    circle as circle,
    deserialize as deserialize,
    get as get,
    serialize as serialize,
)
