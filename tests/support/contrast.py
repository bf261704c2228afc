"""Showing that the textbook form fails at a point where ours holds."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import ulp_error

# In place of a value or a gradient: any finite numbers are right.
FINITE = object()
# Formulas of several operations have the digits of their largest term.
_ULPS = {"float16": 2, "bfloat16": 2, "float32": 20, "float64": 40}


@contextlib.contextmanager
def without_grappler() -> Iterator[None]:
    """Switches off the graph rewrites that repair some textbook forms on their own."""
    before = tf.config.optimizer.get_experimental_options()
    tf.config.optimizer.set_experimental_options({"disable_meta_optimizer": True})
    try:
        yield
    finally:
        tf.config.optimizer.set_experimental_options({
            "disable_meta_optimizer": before.get("disable_meta_optimizer", False)
        })


def is_right(
    function: Callable[..., tf.Tensor],
    args: Sequence[tf.Tensor],
    value: Any,
    gradients: Sequence[Any],
    mode: str,
) -> bool:
    """Tells whether `function` has this value and these gradients in `mode`.

    Args:
      function: Returns one tensor.
      args: Floating tensors, all differentiated.
      value: The right value; `FINITE` where any finite number is right. NaN and
        infinity count as themselves.
      gradients: The right gradient of the summed value for each argument; None for an
        argument without one, `FINITE` likewise.
      mode: One of `modes.MODES`.
    """
    with without_grappler():
        got, slopes = modes.value_and_gradients(function, args, mode)
    return all(
        agrees(a, b) for a, b in zip([got, *slopes], [value, *gradients], strict=True)
    )


def agrees(got: tf.Tensor | None, right: Any) -> bool:
    """Tells whether a tensor holds the right numbers, within a few ulps of its dtype.

    Args:
      got: Floating tensor, or None.
      right: Numbers of a shape that broadcasts to that of `got`; NaN and infinity
        count as themselves. `FINITE` where any finite number is right, None where
        there must be no tensor.
    """
    if got is None or right is None:
        return got is None and right is None
    numbers = np.asarray(tf.cast(got, tf.float64))
    if right is FINITE:
        return bool(np.isfinite(numbers).all())
    right = np.broadcast_to(np.asarray(right, np.float64), numbers.shape)
    if np.any((numbers == 0) & (right != 0)):
        # `ulp_error` accepts it for a subnormal number.
        return False
    return ulp_error(got, right) <= _ULPS[got.dtype.name]
