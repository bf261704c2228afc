"""The counts of a monitor as TensorBoard shows them."""

import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

# Scalars for more variables than these would bury what matters.
_MOST = 10

# What `tf.summary.scalar` writes, which needs TensorBoard to be installed.
_SCALAR = tf.compat.v1.SummaryMetadata(
    plugin_data=tf.compat.v1.SummaryMetadata.PluginData(plugin_name="scalars"),
    data_class="DATA_CLASS_SCALAR",
)


def directory(log_dir: Any) -> str:
    """Returns `log_dir` as text.

    Raises:
      TypeError: If it is no path.
    """
    if not isinstance(log_dir, str | os.PathLike):
        raise TypeError(
            "`log_dir` must be a path, for example that of `keras.callbacks."
            f"TensorBoard`, or None to write nothing. Received: log_dir={log_dir!r}."
        )
    return os.fspath(log_dir)


class Summaries:
    """Writes a few scalars per epoch.

    Args:
      log_dir: Result of `directory`.
    """

    def __init__(self, log_dir: str):
        self._writer = tf.summary.create_file_writer(log_dir)

    def write(self, epoch: int, total: int, shares: Mapping[str, float]) -> None:
        """Writes the total of bad steps, and which share of them hit which variable.

        Args:
          epoch: Number of the epoch, from 0.
          total: Number of bad steps so far.
          shares: By variable path, most hit first.
        """
        hit = list(shares.items())[:_MOST]
        scalars = {f"nonfinite_share/{path}": share for path, share in hit}
        with self._writer.as_default(step=epoch):
            for tag, value in {"nonfinite_steps": total, **scalars}.items():
                number = tf.constant(value, tf.float32)
                tf.summary.write(tag, number, metadata=_SCALAR)

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()
