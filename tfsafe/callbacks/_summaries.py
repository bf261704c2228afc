"""Writes the counts of a monitor for TensorBoard."""

import os
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

# Scalars for more variables than these would hide the important ones.
_MOST = 10

# Edges of the buckets of fractions: 0, up to a tenth, and so on.
_EDGES = [0.0, *np.linspace(0.0, 1.0, 11)]


def _metadata(plugin: str, data_class: str) -> Any:
    """Returns the metadata of `tf.summary`, which itself needs TensorBoard."""
    data = tf.compat.v1.SummaryMetadata.PluginData(plugin_name=plugin)
    return tf.compat.v1.SummaryMetadata(plugin_data=data, data_class=data_class)


_SCALAR = _metadata("scalars", "DATA_CLASS_SCALAR")
_HISTOGRAM = _metadata("histograms", "DATA_CLASS_TENSOR")


def path_of(value: Any, name: str, example: str) -> str:
    """Returns a path as text.

    Raises:
      TypeError: If it is not a path.
    """
    if not isinstance(value, str | os.PathLike):
        raise TypeError(
            f"`{name}` must be a path, for example {example}, or None to write "
            f"nothing. Received: {name}={value!r}."
        )
    return os.fspath(value)


class Summaries:
    """Writes a few scalars per epoch, and a histogram.

    Args:
      log_dir: Result of `directory`.
    """

    def __init__(self, log_dir: str):
        self._writer = tf.summary.create_file_writer(log_dir)

    def write(
        self, epoch: int, total: int, fractions: Mapping[str, float], size: int
    ) -> None:
        """Writes the number of non-finite steps, and which fraction hit each variable.

        Args:
          epoch: Number of the epoch, from 0.
          total: Number of non-finite steps so far.
          fractions: By variable path, most hit first, without those that were not hit.
          size: Number of variables.
        """
        hit = list(fractions.items())[:_MOST]
        scalars = {f"nonfinite_fraction/{path}": fraction for path, fraction in hit}
        with self._writer.as_default(step=epoch):
            for tag, value in {"nonfinite_steps": total, **scalars}.items():
                number = tf.constant(value, tf.float32)
                tf.summary.write(tag, number, metadata=_SCALAR)
            buckets = _buckets([*fractions.values(), *[0.0] * (size - len(fractions))])
            tf.summary.write("nonfinite_fractions", buckets, metadata=_HISTOGRAM)

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()


def _buckets(fractions: Sequence[float]) -> tf.Tensor:
    """Returns rows of left edge, right edge and count, in TensorBoard's format."""
    # Variables that were not hit, the majority, get their own bucket.
    indices = np.searchsorted(_EDGES[1:], fractions, side="left")
    counts = np.bincount(indices, minlength=len(_EDGES) - 1)
    return tf.constant(np.stack([_EDGES[:-1], _EDGES[1:], counts], axis=1), tf.float64)
