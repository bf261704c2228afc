"""What a wrapper passes on, so that Keras cannot tell it from the optimizer inside."""

from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat


class Delegated:
    """An attribute that lives on `inner_optimizer`, for reading and for writing."""

    def __set_name__(self, owner: type, name: str) -> None:
        self._name = name

    def __get__(self, optimizer: Any, owner: type | None = None) -> Any:
        if optimizer is None:
            return self
        return getattr(optimizer.inner_optimizer, self._name)

    def __set__(self, optimizer: Any, value: Any) -> None:
        # Keras' constructor writes its defaults before there is an inner optimizer,
        # whose own values must not be lost to them.
        if "inner_optimizer" in vars(optimizer):
            setattr(optimizer.inner_optimizer, self._name, value)


class DelegatingOptimizer(keras.optimizers.Optimizer):
    """Keras' optimizer interface, answered by `inner_optimizer`.

    Subclasses set `inner_optimizer`, and override `apply` and `build`.
    """

    built: bool
    inner_optimizer: Any

    learning_rate = Delegated()
    iterations = Delegated()
    weight_decay = Delegated()
    clipnorm = Delegated()
    clipvalue = Delegated()
    global_clipnorm = Delegated()
    use_ema = Delegated()
    ema_momentum = Delegated()
    ema_overwrite_frequency = Delegated()
    gradient_accumulation_steps = Delegated()
    loss_scale_factor = Delegated()
    # Of Keras' `MultiOptimizer`; an AttributeError on any other, as it should be.
    optimizers = Delegated()

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


for _name in _compat.OPTIMIZER_INTERNALS:
    _attribute = Delegated()
    _attribute.__set_name__(DelegatingOptimizer, _name)
    setattr(DelegatingOptimizer, _name, _attribute)
