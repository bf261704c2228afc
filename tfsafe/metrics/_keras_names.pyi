# ruff: noqa
# Written by `python -m tests.typing --write`.
from keras.metrics import (
    Metric as Metric,
    binary_accuracy as binary_accuracy,
    categorical_accuracy as categorical_accuracy,
    deserialize as deserialize,
    get as get,
    serialize as serialize,
    sparse_categorical_accuracy as sparse_categorical_accuracy,
    sparse_top_k_categorical_accuracy as sparse_top_k_categorical_accuracy,
    top_k_categorical_accuracy as top_k_categorical_accuracy,
)
