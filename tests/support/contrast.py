"""Showing that the textbook form fails at a point where ours holds."""

import contextlib
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tests.support import modes


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
      value: The right value. NaN and infinity count as themselves.
      gradients: The right gradient of the summed value for each argument.
      mode: One of `modes.MODES`.
    """
    with without_grappler():
        got, slopes = modes.value_and_gradients(function, args, mode)
    # 2e-3 is two ulps of float16; 0 for a number that is not 0 never passes.
    return all(
        np.allclose(np.asarray(a, np.float64), b, rtol=2e-3, atol=0, equal_nan=True)
        for a, b in zip([got, *slopes], [value, *gradients], strict=True)
    )
