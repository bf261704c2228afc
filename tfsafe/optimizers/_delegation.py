"""What a wrapper passes on, so that Keras cannot tell it from the optimizer inside."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat

DELEGATED = (
    "learning_rate",
    "iterations",
    "weight_decay",
    "clipnorm",
    "clipvalue",
    "global_clipnorm",
    "use_ema",
    "ema_momentum",
    "ema_overwrite_frequency",
    "gradient_accumulation_steps",
    "loss_scale_factor",
    # Of Keras' `MultiOptimizer`; an AttributeError on any other, as it should be.
    "optimizers",
    *_compat.OPTIMIZER_INTERNALS,
)


class DelegatingOptimizer(keras.optimizers.Optimizer):
    """Keras' optimizer interface, answered by `inner_optimizer`.

    Subclasses set `inner_optimizer`, and override `apply` and `build`.
    """

    built: bool
    inner_optimizer: Any

    def apply_gradients(self, grads_and_vars: Any) -> Any:
        """Applies pairs of gradient and variable.

        Args:
          grads_and_vars: Iterable of `(gradient, variable)`.

        Returns:
          The inner optimizer's `iterations`.
        """
        super().apply_gradients(grads_and_vars)
        return self.iterations

    def scale_loss(self, loss: tf.Tensor) -> tf.Tensor:
        """Returns the loss as the inner optimizer scales it."""
        return self.inner_optimizer.scale_loss(loss)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Writes the inner optimizer's moving averages into the variables."""
        self.inner_optimizer.finalize_variable_values(var_list)

    def exclude_from_weight_decay(
        self, var_list: Any = None, var_names: Any = None
    ) -> None:
        """Excludes variables from the inner optimizer's weight decay."""
        self.inner_optimizer.exclude_from_weight_decay(var_list, var_names)


def delegated(name: str) -> property:
    """Returns the attribute of the inner optimizer, to read and to set."""

    def read(optimizer: Any) -> Any:
        return getattr(optimizer.inner_optimizer, name)

    def write(optimizer: Any, value: Any) -> None:
        # Keras' constructor writes its defaults before there is an inner optimizer,
        # whose own values must not be lost to them.
        if "inner_optimizer" in vars(optimizer):
            setattr(optimizer.inner_optimizer, name, value)

    return property(read, write, doc=f"The inner optimizer's `{name}`.")


for _name in DELEGATED:
    setattr(DelegatingOptimizer, _name, delegated(_name))
