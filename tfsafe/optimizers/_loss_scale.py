"""Provides Keras' `LossScaleOptimizer` with a scale that cannot become 0."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe.optimizers import _arguments, _gradient_check
from tfsafe.optimizers._delegation import delegated

# The largest power of 2 in float32: one more doubling gives infinity, which no halving
# makes finite again.
_LARGEST_SCALE = 2.0**127


@keras.saving.register_keras_serializable(package="tfsafe")
class LossScaleOptimizer(keras.optimizers.LossScaleOptimizer):
    """Scales the loss for float16 as Keras does, with a scale that stays in bounds.

    Keras halves its scale at every step whose gradients are not finite, without end:
    after 165 such steps it is 0, the next clean step divides 0 by 0, and every weight
    is NaN. Under a distribution strategy, Keras decides by the gradients of the first
    replica, and a NaN on another one reaches the weights. Here the scale stops at
    `minimum_scale`, and all replicas skip a step if it is non-finite on one.

    Put it outermost. `compile` under the policy mixed_float16 adds Keras' own around
    any other optimizer, but none around this one:
    `LossScaleOptimizer(SafeOptimizer(keras.optimizers.Adam()))`.

    Args:
      inner_optimizer: Keras optimizer.
      initial_scale: First scale.
      dynamic_growth_steps: The scale doubles after this many finite steps in a row.
      minimum_scale: The scale never falls below this; a positive number. The default
        does not multiply by less than 1. If steps are non-finite even then, the scale
        cannot help: find the cause with `tfsafe.checked`. A model whose true
        gradients are above 65504 needs a smaller one, such as 2.0**-10.
      **kwargs: `name`, and what else Keras' class takes.

    Raises:
      ValueError: If `inner_optimizer` is not an optimizer, or `minimum_scale` not a
        positive number, or above `initial_scale`.

    Numerics:
      gradient NaN, infinite      step skipped, scale halved, at least minimum_scale
      the same on one replica     the same on all of them
      scale above 2**127          2**127

    Examples:
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe.optimizers import LossScaleOptimizer
      >>> weights = tf.Variable([1.0])
      >>> optimizer = LossScaleOptimizer(keras.optimizers.SGD(0.5))
      >>> for _ in range(200):
      ...     optimizer.apply([tf.constant([float("nan")])], [weights])
      >>> optimizer.apply([optimizer.scale_loss(tf.constant([1.0]))], [weights])
      >>> print(weights.numpy(), float(optimizer.dynamic_scale.numpy()))
      [0.5] 1.0
    """

    def __init__(
        self,
        inner_optimizer: Any,
        initial_scale: float = 2.0**15,
        dynamic_growth_steps: int = 2000,
        *,
        minimum_scale: float = 1.0,
        **kwargs: Any,
    ):
        _arguments.refuse_unless_optimizer(inner_optimizer)
        super().__init__(inner_optimizer, initial_scale, dynamic_growth_steps, **kwargs)
        self.minimum_scale = _arguments.minimum_scale(minimum_scale, initial_scale)

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Takes one step, or skips it and halves the scale.

        Args:
          grads: One gradient of the scaled loss per variable, or None.
          trainable_variables: The variables; None for those of `build`.
        """
        super().apply(grads, trainable_variables)
        self.dynamic_scale.assign(
            tf.clip_by_value(self.dynamic_scale, self.minimum_scale, _LARGEST_SCALE)
        )

    def check_finite(self, grads: Sequence[Any]) -> tf.Tensor:
        """Returns whether the gradients are finite on all replicas.

        Args:
          grads: `Tensor`s, `IndexedSlices` or None.

        Returns:
          Boolean scalar `Tensor`, the same on every replica.
        """
        values = [
            gradient.values if isinstance(gradient, tf.IndexedSlices) else gradient
            for gradient in grads
            if gradient is not None
        ]
        flags = [tf.reduce_all(tf.math.is_finite(value)) for value in values]
        is_nonfinite = tf.cast(~tf.reduce_all([True, *flags]), tf.float32)
        return tf.equal(_gradient_check.summed_over_replicas(is_nonfinite), 0)

    iterations = delegated("iterations")

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Applies pairs of gradient and variable.

        Args:
          grads_and_vars: Iterable of `(gradient, variable)`.

        Returns:
          The inner optimizer's `iterations`.
        """
        super().apply_gradients(grads_and_vars)
        return self.iterations

    def exclude_from_weight_decay(
        self, var_list: Any = None, var_names: Any = None
    ) -> None:
        """Excludes variables from the inner optimizer's weight decay."""
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the values of `variables`.

        Args:
          weights: One array per variable.

        Raises:
          ValueError: If there are more or fewer.
        """
        variables = self.variables
        if len(weights) != len(variables):
            raise ValueError(
                f"`weights` must hold {len(variables)} arrays, one for each of "
                f"`variables`. Received: {len(weights)}. Call "
                "`build(trainable_variables)` first if the optimizer was not used yet."
            )
        for variable, weight in zip(variables, weights, strict=True):
            variable.assign(weight)

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {**super().get_config(), "minimum_scale": self.minimum_scale}
