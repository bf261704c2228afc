"""Delegates the attributes that Keras uses to the optimizer inside a wrapper."""

from collections.abc import Callable, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._report import html

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
    # Only Keras' `MultiOptimizer` has it; others rightly raise an AttributeError.
    "optimizers",
    *_compat.OPTIMIZER_INTERNALS,
)


class DelegatingOptimizer(keras.optimizers.Optimizer):
    """Keras' optimizer interface, delegated to `inner_optimizer`.

    Subclasses set `inner_optimizer`, and override `apply`, `build` and `own_variables`.
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

    def _repr_html_(self) -> str:
        """Shows settings and counters in a notebook."""
        settings = {
            name: value
            for name, value in self.get_config().items()
            if isinstance(value, bool | int | float | str)
        }
        counters = {
            name: keras.ops.convert_to_numpy(variable)
            for name, variable in getattr(self, "counters", {}).items()
        }
        rows = [(name, str(value)) for name, value in (settings | counters).items()]
        title = f"{type(self).__name__} of {type(self.inner_optimizer).__name__}"
        return html.fragment_of_table(title, [("", "value"), *rows])

    def own_variables(self) -> dict[str, Any]:
        """Returns the wrapper's own variables by the names in saved files."""
        raise NotImplementedError

    @property
    def variables(self) -> list[keras.Variable]:
        """The wrapper's variables, counters first, then the inner optimizer's."""
        return [*self.own_variables().values(), *self.inner_optimizer.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the values of `variables`, or those of the inner optimizer alone.

        Args:
          weights: One array per variable.

        Raises:
          ValueError: If their number fits neither.
        """
        own = list(self.own_variables().values())
        inner = self.inner_optimizer
        sizes = (len(inner.variables), len(own) + len(inner.variables))
        if len(weights) not in sizes:
            raise ValueError(
                f"`weights` must hold {sizes[1]} arrays, one for each of `variables`, "
                f"or {sizes[0]} for the inner optimizer alone. Received: "
                f"{len(weights)}. Call `build(trainable_variables)` first if the "
                "optimizer was not used yet."
            )
        split = len(weights) - len(inner.variables)
        for variable, weight in zip(own, weights[:split], strict=False):
            variable.assign(weight)
        inner.set_weights(weights[split:])

    def save_own_variables(self, store: Any) -> None:
        """Saves the wrapper's variables; Keras itself saves the inner optimizer."""
        for name, variable in self.own_variables().items():
            store[name] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Restores its variables, or only the inner optimizer's from a file of it.

        The counters start from 0 where the file counts other variables, such as those
        of a model before its adapters: Keras skips its optimizers' variables then.
        """
        names = set(store.keys())
        own = {n: v for n, v in self.own_variables().items() if n in names}
        if all(tuple(store[n].shape) == tuple(v.shape) for n, v in own.items()):
            for name, variable in own.items():
                variable.assign(store[name])
        if names and not own:
            self.inner_optimizer.load_own_variables(store)


def _inner(optimizer: Any) -> Any:
    return optimizer.inner_optimizer


def delegated(name: str, owner: Callable[[Any], Any] = _inner) -> property:
    """Returns a property that reads and sets an attribute of another object."""

    def read(optimizer: Any) -> Any:
        return getattr(owner(optimizer), name)

    def write(optimizer: Any, value: Any) -> None:
        # Keras' constructor writes its defaults before the inner optimizer exists.
        # They must not overwrite the inner optimizer's values.
        if "inner_optimizer" in vars(optimizer):
            setattr(owner(optimizer), name, value)

    return property(read, write, doc=f"The inner optimizer's `{name}`.")


for _name in DELEGATED:
    setattr(DelegatingOptimizer, _name, delegated(_name))
