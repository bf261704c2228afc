"""The counts of a monitor as TensorBoard shows them."""

import importlib.util
import os
from collections.abc import Mapping
from typing import Any

import tensorflow as tf

# Scalars for more variables than these would bury what matters.
_MOST = 10


def directory(log_dir: Any) -> str:
    """Returns `log_dir` as text, if TensorBoard's summaries can be written there.

    Raises:
      TypeError: If it is no path.
      ImportError: If TensorBoard is not installed.
    """
    if not isinstance(log_dir, str | os.PathLike):
        raise TypeError(
            "`log_dir` must be a path, for example that of `keras.callbacks."
            f"TensorBoard`, or None to write nothing. Received: log_dir={log_dir!r}."
        )
    if importlib.util.find_spec("tensorboard") is None:
        raise ImportError(
            "`log_dir` needs TensorBoard, whose writer `tf.summary` uses. Received: "
            f"log_dir={log_dir!r}. Install it with `pip install tensorboard`, or leave "
            "`log_dir` out."
        )
    return os.fspath(log_dir)


class Summaries:
    """Writes one line of scalars per epoch.

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
        with self._writer.as_default(step=epoch):
            tf.summary.scalar("nonfinite_steps", total)
            for path, share in list(shares.items())[:_MOST]:
                tf.summary.scalar(f"nonfinite_share/{path}", share)
            if shares:
                tf.summary.histogram("nonfinite_shares", list(shares.values()))

    def close(self) -> None:
        """Flushes and closes the file."""
        self._writer.close()
