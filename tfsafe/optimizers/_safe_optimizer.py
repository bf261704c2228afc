"""Wraps an optimizer so that a non-finite gradient cannot ruin the model."""

import contextlib
import functools
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, Literal

import keras
import tensorflow as tf

from tfsafe import _args, _calls, _compat
from tfsafe.optimizers import (
    _arguments,
    _clipping,
    _counters,
    _gradient_check,
    _master_copies,
)
from tfsafe.optimizers._delegation import DelegatingOptimizer, delegated

POLICIES = ("replace", "zero_variable", "skip")


def _clipper(optimizer: "SafeOptimizer") -> Any:
    """Returns the owner of the clipping norms: the wrapper's clipping or the inner."""
    own = optimizer._clipping
    return own if own.is_on else optimizer.inner_optimizer


@keras.saving.register_keras_serializable(package="tfsafe")
class SafeOptimizer(DelegatingOptimizer):
    """Wraps a Keras optimizer so that a non-finite gradient costs only one step.

    Without it, one NaN in a gradient makes the weight and its slots NaN for ever, and
    so does one finite 1e20, because Adam squares it. The wrapper passes on what
    the inner optimizer has (`learning_rate`, `iterations`, ...), and goes wherever a
    Keras optimizer goes. The guide "Choose a policy" in the documentation compares
    the policies and says what no optimizer can repair.

    Examples:
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe.optimizers import SafeOptimizer
      >>> weights = tf.Variable([1.0, 1.0, 1.0])
      >>> optimizer = SafeOptimizer(keras.optimizers.SGD(0.5))
      >>> optimizer.apply([tf.constant([1.0, float("nan"), 1e20])], [weights])
      >>> print(weights.numpy())
      [0.5 1.  1. ]
      >>> optimizer.nonfinite_steps, optimizer.steps
      (1, 1)

    Args:
      inner_optimizer: Keras optimizer: instance, name or config.
      policy: What a non-finite step does. `"replace"`: such elements become 0;
        `"zero_variable"`: so does the whole gradient of their variable; `"skip"`: the
        step changes nothing.
      limit: Largest magnitude of a gradient's element that counts as finite. None means
        1e15, and 1e150 for float64 variables; `math.inf` with a clipping norm up to
        1e15.
      clipnorm: Largest norm of each variable's gradient, as in Keras, but without
        overflow. The inner optimizer must not clip then.
      global_clipnorm: The same for all gradients together.
      outlier_threshold: Skips steps whose gradient norm is as many deviations above the
        mean of the last steps, in logarithms, and at least doubled; 6 is usual.
      outlier_window: Number of steps in that mean; none is skipped before.
      outlier_patience: After this many outliers in a row, the last of them is taken.
      max_consecutive: As many non-finite steps in a row raise `NumericsError`: from
        `apply` in eager mode, from `NumericsMonitor` or `raise_if_stuck` otherwise.
      count_elements: Whether to count non-finite elements, for
        `last_nonfinite_elements`.
      name: Name of the wrapper.

    Raises:
      ValueError: If an argument is not a Keras optimizer or out of range, the inner
        optimizer is a `SafeOptimizer` or a `LossScaleOptimizer`, or more than one
        clipping is asked for.

    Numerics:
      NaN, +Inf, -Inf      non-finite: see `policy`
      0 in all gradients   skipped after a replacement; an ordinary step without one
      abs(g) > limit       non-finite; of the unscaled one with `loss_scale_factor`
      abs(g) <= limit      passed on bit for bit
      norm > clipnorm      scaled down; a smaller one is passed on bit for bit
      None                 passed on; if all are None, Keras' ValueError
      `IndexedSlices`      stay sparse
      float16, bfloat16    trained as float32 copies, rounded once
      replicas             one decision and one count: non-finite on one, on all
      overwrite_with_gradient
                           only NaN and Inf are non-finite: old value; no clipping
    """

    clipnorm = delegated("clipnorm", _clipper)
    global_clipnorm = delegated("global_clipnorm", _clipper)

    @_calls.answered(
        "Arguments of the optimizer inside go to that one, as in "
        "`SafeOptimizer(keras.optimizers.Adam(learning_rate=1e-3))`."
    )
    def __init__(
        self,
        inner_optimizer: Any,
        policy: Literal["replace", "zero_variable", "skip"] = "replace",
        *,
        limit: float | None = None,
        clipnorm: float | None = None,
        global_clipnorm: float | None = None,
        outlier_threshold: float | None = None,
        outlier_window: int = 100,
        outlier_patience: int = 10,
        max_consecutive: int | None = None,
        count_elements: bool = False,
        name: str | None = None,
    ):
        # The learning rate is the inner optimizer's; this one is never read.
        super().__init__(learning_rate=0.0, name=name)
        # Before the outliers' variables: that is the order in saved optimizers.
        self._counters = _counters.StepCounters(self.add_variable)
        self._made_under = tf.distribute.get_strategy()
        self.inner_optimizer = _arguments.inner_optimizer(inner_optimizer)
        self._copies = self._copies_of([])
        self.policy = _args.one_of(policy, POLICIES, "policy")
        self.limit = _arguments.limit(limit)
        self._clipping = _clipping.GradientClipping(
            *_arguments.clipping(clipnorm, global_clipnorm, self.inner_optimizer)
        )
        self.outlier_threshold = _arguments.outlier_threshold(outlier_threshold)
        self.outlier_window = _arguments.steps(outlier_window, "outlier_window", 2)
        self.outlier_patience = _arguments.steps(
            outlier_patience, "outlier_patience", 1
        )
        self._filter = _clipping.outlier_filter(
            self.outlier_threshold,
            self.outlier_window,
            self.outlier_patience,
            self.add_variable,
        )
        self._track(self.counters)
        self.max_consecutive = _arguments.max_consecutive(max_consecutive)
        self.count_elements = bool(count_elements)

    def _track(self, variables: dict[str, keras.Variable]) -> None:
        """Gives variables their names in the files of `tf.train.Checkpoint`."""
        for name, variable in variables.items():
            setattr(self, _counters.CHECKPOINT_NAMES[name], variable)

    def _copies_of(self, variables: Sequence[Any]) -> _master_copies.MasterCopies:
        return _master_copies.MasterCopies(
            self.inner_optimizer, variables, self.add_variable
        )

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the inner optimizer's slots, the counters and the float32 copies.

        Args:
          variables: The variables to train.

        Raises:
          ValueError: If the inner optimizer was built before, for variables in half
            precision.
        """
        if self.built:
            return
        variables = list(variables)
        if self.inner_optimizer.built:
            _arguments.refuse_half_slots(variables)
        self._counters.build(variables, self.add_variable)
        self._track(self._counters.by_variable)
        self._copies = self._copies_of(variables)
        if not self.inner_optimizer.built:
            self._copies.exclude_from_weight_decay()
            self.inner_optimizer.build(self._copies.of(variables))
        self.built = True

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Takes one step, or skips it.

        Args:
          grads: One gradient per variable: `Tensor`, `IndexedSlices` or None.
          trainable_variables: The variables; None for those of `build`.

        Raises:
          ValueError: If there are more or fewer gradients than variables, all of them
            are None, or a strategy is in scope and this is not within its `run`.
          NumericsError: In eager execution, if this is the `max_consecutive`-th
            non-finite step in a row.
        """
        _arguments.check_strategy(self._made_under, self.inner_optimizer)
        _arguments.check_call(grads, trainable_variables)
        grads = list(grads)
        has_gradient = any(gradient is not None for gradient in grads)
        has_variables = trainable_variables is not None or self.inner_optimizer.built
        if not (has_gradient and has_variables):
            # Keras does nothing or raises ValueError, which a branch would hide.
            self.inner_optimizer.apply(grads, trainable_variables)
            return
        if trainable_variables is None and self.built:
            trainable_variables = self._copies.variables
        elif trainable_variables is None:
            trainable_variables = _compat.built_variables(self.inner_optimizer)
        variables = list(trainable_variables)
        self.build(variables)
        with tf.name_scope(self.name):
            tensors = _arguments.gradients(grads, variables)
            pairs = zip(tensors, variables, strict=True)
            grads = [_master_copies.widened(*pair) for pair in pairs]
            self._guarded_step(grads, self._copies.of(variables))
        if self.max_consecutive is not None and tf.executing_eagerly():
            self.raise_if_stuck()

    def _guarded_step(self, grads: list[Any], variables: list[Any]) -> None:
        limit = self.limit
        if limit is None and self._clipping.lets_all_finite_pass():
            limit = math.inf
        of_all = variables, limit, self.loss_scale_factor
        within = functools.partial(_gradient_check.all_within, grads, *of_all)
        halves = _gradient_check.half_squares(grads)
        is_short = _gradient_check.is_short(halves, *of_all)
        positions = _compat.variable_positions(self.inner_optimizer, variables)
        arguments = positions, len(self._counters.paths), self.count_elements
        counts = _gradient_check.nonfinite_counts(is_short, within, *arguments)
        flags, elements = counts > 0, counts if self.count_elements else counts > 0
        is_nonfinite = skips = tf.reduce_any(flags)

        # On replicas, the branch receives the gradients of each.
        def usable(grads: list[Any], flags: tf.Tensor) -> list[tf.Tensor | None]:
            if self.policy == "zero_variable":
                return _gradient_check.whole(flags, positions)
            return _gradient_check.all_within(grads, *of_all)

        def replaced(grads: list[Any], is_due: tf.Tensor, flags: tf.Tensor) -> Any:
            pairs = list(zip(grads, variables, strict=True))
            kept = functools.partial(usable, grads, flags)
            is_kept = self.policy == "skip"
            return grads if is_kept else _gradient_check.replaced(is_due, pairs, kept)

        if self.policy != "skip":
            kept = functools.partial(usable, grads, flags)
            pairs = list(zip(grads, variables, strict=True))
            skips = _gradient_check.nothing_left(is_nonfinite, pairs, kept)
        if self._filter is not None:
            left = replaced(grads, is_nonfinite, flags)
            norm = _clipping.log_global_norm(left, variables, self.loss_scale_factor)
            norm = tf.where(skips, -math.inf, norm)
            skips = self._filter.skips(norm, is_nonfinite) | skips
        step = functools.partial(self._step, variables, replaced)
        args = [grads, halves, is_nonfinite, flags]
        _counters.either(skips, _counters.nothing, step, args)
        self._counters.count(is_nonfinite, flags, elements)

    def _step(
        self, variables: list[Any], replaced: Callable[..., Any], args: list[Any]
    ) -> None:
        grads, halves, is_replaced, flags = args
        grads = replaced(grads, is_replaced, flags)
        with self.for_the_copies():
            scale = self.loss_scale_factor
            clipped = self._clipping.clip(grads, variables, scale, halves, is_replaced)
            with _counters.in_turn(self.inner_optimizer, variables):
                self.inner_optimizer.apply(clipped, variables)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Writes the inner optimizer's moving averages into the variables."""
        with self.for_the_copies():
            super().finalize_variable_values(self._copies.of(var_list))

    @contextlib.contextmanager
    def for_the_copies(self) -> Iterator[None]:
        """Copies values to the float32 copies before the block, and back after it.

        The inner optimizer trains these copies in place of variables in half precision.
        Each step does this by itself.

        Yields:
          Nothing.
        """
        self._copies.take_over()
        yield
        self._copies.write_back()

    def exclude_from_weight_decay(
        self, var_list: Any = None, var_names: Any = None
    ) -> None:
        """Excludes variables from the inner optimizer's weight decay."""
        super().exclude_from_weight_decay(var_list, var_names)
        self._copies.exclude_from_weight_decay()

    @property
    def counters(self) -> dict[str, keras.Variable]:
        """The integer variables that count the steps, for use in compiled code."""
        counters = dict(self._counters.totals)
        if self._filter is not None:
            counters["outlier_steps"] = self._filter.counter
        return counters

    @property
    def steps(self) -> int:
        """Number of steps asked for; reading a count waits for the device."""
        return self._counters.total("steps")

    @property
    def nonfinite_steps(self) -> int:
        """How many of them were non-finite."""
        return self._counters.total("nonfinite_steps")

    @property
    def consecutive_nonfinite_steps(self) -> int:
        """How many non-finite steps there were since the last finite one."""
        return self._counters.total("consecutive_nonfinite_steps")

    @property
    def last_nonfinite_step(self) -> int:
        """Number of the last non-finite step, as `steps` counts from 1; 0 for none."""
        return self._counters.total("last_nonfinite_step")

    @property
    def was_nonfinite(self) -> bool:
        """Whether the last step was non-finite."""
        return self.consecutive_nonfinite_steps > 0

    @property
    def outlier_steps(self) -> int:
        """How many steps were skipped as outliers; 0 without `outlier_threshold`."""
        return 0 if self._filter is None else _counters.read(self._filter.counter)

    @property
    def nonfinite_steps_by_variable(self) -> dict[str, int]:
        """In how many steps the gradient of a variable was non-finite, by its path."""
        return self._counters.positive("nonfinite_steps_by_variable")

    @property
    def last_nonfinite_variables(self) -> tuple[str, ...]:
        """Paths of the variables with a non-finite gradient in the last such step."""
        return tuple(self._counters.positive("last_nonfinite_variables"))

    @property
    def last_nonfinite_elements(self) -> dict[str, int]:
        """How many elements of these gradients were non-finite, by path.

        Replicas add up.

        Raises:
          RuntimeError: If the optimizer does not count them.
        """
        if not self.count_elements:
            raise RuntimeError(
                "The non-finite elements are not counted. Create the optimizer with "
                "`count_elements=True`."
            )
        return self._counters.positive("last_nonfinite_variables")

    def raise_if_stuck(self) -> None:
        """Ends a training whose last `max_consecutive` steps were all non-finite.

        For the host, between two compiled steps.

        Raises:
          NumericsError: If they were. Names the variables.
        """
        self._counters.raise_if_stuck(self.max_consecutive)

    def own_variables(self) -> dict[str, Any]:
        """Returns the counters, the statistic and the copies, by saved name."""
        own: dict[str, Any] = self.counters
        if self._filter is not None:
            own["gradient_norm_statistic"] = self._filter.statistic
        own.update(self._counters.by_variable)
        for index, copy in enumerate(self._copies):
            own[f"master_copy_{index}"] = copy
        return own

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "name": self.name,
            "inner_optimizer": keras.saving.serialize_keras_object(
                self.inner_optimizer
            ),
            "policy": self.policy,
            "limit": self.limit,
            "clipnorm": self._clipping.clipnorm,
            "global_clipnorm": self._clipping.global_clipnorm,
            "outlier_threshold": self.outlier_threshold,
            "outlier_window": self.outlier_window,
            "outlier_patience": self.outlier_patience,
            "max_consecutive": self.max_consecutive,
            "count_elements": self.count_elements,
        }

    @classmethod
    def from_config(
        cls, config: dict[str, Any], custom_objects: Any = None
    ) -> "SafeOptimizer":
        """Creates the optimizer from its configuration."""
        inner = keras.saving.deserialize_keras_object(
            config["inner_optimizer"], custom_objects=custom_objects
        )
        return cls(**{**config, "inner_optimizer": inner})
