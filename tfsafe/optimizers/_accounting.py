"""How often, when and where the gradients were bad: state that is saved."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe._text import listed
from tfsafe.errors import NumericsError
from tfsafe.optimizers._clipping import ClippingOptimizer
from tfsafe.optimizers._master_copies import MasterCopies
from tfsafe.optimizers._outliers import NormStatistic


class CountingOptimizer(ClippingOptimizer):
    """A wrapper that counts bad steps, on the device and within the compiled step.

    Its own variables, which it saves and restores, are the counters, and those of the
    two helpers below where there are any. Subclasses set `inner_optimizer`,
    `max_consecutive` and `count_elements`, and call `_count`.
    """

    max_consecutive: int | None
    count_elements: bool
    _copies: MasterCopies
    _norms: NormStatistic | None = None

    def __init__(self, name: str | None):
        # The learning rate is the inner optimizer's; this one is never read.
        super().__init__(learning_rate=0.0, name=name)
        self._paths: tuple[str, ...] = ()
        self._flags: Any = None
        self._hits: Any = None
        self._outliers: Any = None
        self._steps = self._add_counter("steps")
        self._nonfinite = self._add_counter("nonfinite_steps")
        self._consecutive = self._add_counter("consecutive_nonfinite_steps")
        self._last = self._add_counter("last_nonfinite_step")

    @property
    def counters(self) -> dict[str, keras.Variable]:
        """The integer variables that count the steps, for use in compiled code."""
        counters = {
            "steps": self._steps,
            "nonfinite_steps": self._nonfinite,
            "consecutive_nonfinite_steps": self._consecutive,
            "last_nonfinite_step": self._last,
        }
        if self._outliers is not None:
            counters["outlier_steps"] = self._outliers
        return counters

    @property
    def steps(self) -> int:
        """How many steps were asked for, good or bad."""
        return _read(self._steps)

    @property
    def nonfinite_steps(self) -> int:
        """How many of them were bad."""
        return _read(self._nonfinite)

    @property
    def consecutive_nonfinite_steps(self) -> int:
        """How many bad steps there were since the last good one."""
        return _read(self._consecutive)

    @property
    def last_nonfinite_step(self) -> int:
        """Number of the last bad step, as `steps` counts from 1; 0 for none."""
        return _read(self._last)

    @property
    def was_nonfinite(self) -> bool:
        """Whether the last step was bad."""
        return self.consecutive_nonfinite_steps > 0

    @property
    def outlier_steps(self) -> int:
        """How many steps were left out as outliers; 0 without `outlier_threshold`."""
        return 0 if self._outliers is None else _read(self._outliers)

    @property
    def nonfinite_steps_by_variable(self) -> dict[str, int]:
        """In how many steps the gradient of a variable was bad, by its path."""
        return _positive(self._by_path(self._hits))

    @property
    def last_nonfinite_variables(self) -> tuple[str, ...]:
        """Paths of the variables whose gradient was bad in the last bad step."""
        return tuple(_positive(self._by_path(self._flags)))

    @property
    def last_nonfinite_elements(self) -> dict[str, int]:
        """How many elements of these gradients were bad, by path of the variable.

        Raises:
          RuntimeError: If the optimizer does not count them.
        """
        if not self.count_elements:
            raise RuntimeError(
                "The bad elements are not counted, as that takes time in every step. "
                "Create the optimizer with `count_elements=True`."
            )
        return _positive(self._by_path(self._flags))

    def _by_path(self, counts: Any) -> dict[str, int]:
        if counts is None:
            return {}
        return dict(zip(self._paths, map(int, counts.numpy()), strict=True))

    def raise_if_stuck(self) -> None:
        """Ends a training whose last `max_consecutive` steps were all bad.

        For the host, between two compiled steps.

        Raises:
          NumericsError: If they were. Names the variables.
        """
        if self.max_consecutive is None:
            return
        count = self.consecutive_nonfinite_steps
        if count >= self.max_consecutive:
            raise NumericsError(self._describe(count))

    def _add_flags(self, variables: Sequence[Any]) -> None:
        """Creates one flag or count for each variable, in their order."""
        self._paths = tuple(getattr(v, "path", v.name) for v in variables)
        shape = (len(variables),)
        self._flags = self._add_counter("last_nonfinite_variables", shape)
        self._hits = self._add_counter("nonfinite_steps_by_variable", shape)

    def _count(self, is_bad: tf.Tensor, flags: tf.Tensor, elements: tf.Tensor) -> None:
        """Counts a step.

        Args:
          is_bad: Whether it was bad.
          flags: For each variable, whether its gradient was.
          elements: How many elements of it were, or the flags again.
        """
        one_if_bad = tf.cast(is_bad, tf.int64)
        self._steps.assign_add(1)
        self._nonfinite.assign_add(one_if_bad)
        self._consecutive.assign((self._consecutive + 1) * one_if_bad)
        self._last.assign(tf.where(is_bad, self._steps, self._last))
        self._flags.assign(tf.where(is_bad, tf.cast(elements, tf.int64), self._flags))
        self._hits.assign_add(tf.cast(flags, tf.int64))

    def _add_counter(self, name: str, shape: tuple[int, ...] = ()) -> keras.Variable:
        # int64, as Keras' own `iterations`: TensorFlow keeps int32 off the GPU.
        return self.add_variable(
            shape, "zeros", "int64", aggregation="only_first_replica", name=name
        )

    def _describe(self, count: int) -> str:
        paths = self.last_nonfinite_variables
        where = f"{len(paths)} of {len(self._paths)} variables"
        steps = "step" if count == 1 else f"{count} steps in a row"
        return (
            f"The last {steps} had gradients that are NaN, infinite or above the "
            f"limit: step {self.last_nonfinite_step}, in {where} "
            f"({listed(paths)}). Put `@tfsafe.checked` on the training "
            "step to see which operation makes the first bad value, and mend it or the "
            "data; where gradients grow from step to step, lower the learning rate or "
            f"clip them. (max_consecutive={self.max_consecutive})"
        )

    def _own_variables(self) -> dict[str, Any]:
        own: dict[str, Any] = dict(self.counters)
        if self._norms is not None:
            own["gradient_norm_statistic"] = self._norms.variable
        if self._flags is not None:
            own["last_nonfinite_variables"] = self._flags
            own["nonfinite_steps_by_variable"] = self._hits
        for index, copy in enumerate(self._copies):
            own[f"master_copy_{index}"] = copy
        return own

    @property
    def variables(self) -> list[keras.Variable]:
        """The wrapper's own, the counters first, then those of the inner optimizer."""
        return [*self._own_variables().values(), *self.inner_optimizer.variables]

    def set_weights(self, weights: Sequence[Any]) -> None:
        """Sets the values of `variables`, or those of the inner optimizer alone.

        Args:
          weights: One array per variable.

        Raises:
          ValueError: If their number fits neither.
        """
        own = list(self._own_variables().values())
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
        """Saves the wrapper's own; Keras saves the inner optimizer by itself."""
        for name, variable in self._own_variables().items():
            store[name] = variable.numpy()

    def load_own_variables(self, store: Any) -> None:
        """Restores its own, or the inner optimizer from a file without wrapper."""
        names = set(store.keys())
        own = {n: v for n, v in self._own_variables().items() if n in names}
        for name, variable in own.items():
            variable.assign(store[name])
        if names and not own:
            self.inner_optimizer.load_own_variables(store)


def _positive(counts: dict[str, int]) -> dict[str, int]:
    return {path: count for path, count in counts.items() if count}


def _read(counter: keras.Variable) -> int:
    if not tf.executing_eagerly():
        raise RuntimeError(
            "The counts are Python numbers and cannot be read within a tf.function. "
            "Use the variables in `counters` there, or read the counts after the call."
        )
    return int(counter.numpy())
