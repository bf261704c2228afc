"""The optimizer wrapper that one bad gradient cannot ruin."""

import contextlib
import math
from collections.abc import Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe.optimizers import (
    _arguments,
    _branch,
    _gradient_check,
    _master_copies,
    _outliers,
)
from tfsafe.optimizers._accounting import CountingOptimizer

POLICIES = ("replace", "zero_variable", "skip")


@keras.saving.register_keras_serializable(package="tfsafe")
class SafeOptimizer(CountingOptimizer):
    """Wraps a Keras optimizer so that a bad gradient costs one step, not the model.

    Without it, one NaN in a gradient makes the weight and its slots NaN for ever. So
    does one finite 1e20, two steps later, because Adam squares it: that is how LSTMs
    on long sequences die, and why a test for NaN, a `LossScaleOptimizer` and
    `global_clipnorm` do not save them.

    Here each element of a gradient `g` must pass `abs(g) <= limit` before anything
    else is done to it, the inner optimizer's clipping included. NaN, infinity and
    whatever would overflow in the optimizer fail. A step in which an element fails is
    bad (*non-finite* in the names below), and `policy` decides about it:

    - `"replace"`: elements that fail become 0, and the step is taken, unless all
      gradients are 0 then: such a step is left out as with `"skip"`. `iterations`,
      schedule, momentum and weight decay go on. Choose it where only a part of the
      gradient is bad: independent heads, embeddings, single weights.
    - `"zero_variable"`: as `"replace"`, but the whole gradient of a variable becomes 0
      if one of its elements fails. Choose it where a bad element casts doubt on its
      neighbours, as they come from the same activations, but not on other variables:
      separate towers or heads.
    - `"skip"`: nothing changes, neither weights nor slots, `iterations`, schedule,
      moving averages or accumulated gradients: training goes on bit for bit as if the
      batch had not been there. Choose it where a bad step is bad as a whole (after an
      LSTM, one bad time step spoils the whole kernel) or where bad steps come in long
      runs. In gradient accumulation, another micro-batch takes the place.

    All slow Adam down. If a fraction `p` of the steps is left out and the gradient is
    otherwise constant, weights move `1 - p` times as far: exactly the good steps. A
    weight that gets 0 in them instead moves `sqrt(1 - p)` times as far: zeros shrink
    the second moment too, so that each good step is `1 / sqrt(1 - p)` times as long,
    3.2 times at `p = 0.9`. In a long run of zeros it also goes on with stale momentum
    and weight decay, and overshoots after it. With Lion, whose steps are as long for a
    small momentum as for a large one, it runs far away: choose `"skip"` there. With
    `"replace"`, `p` is that of the weight; with `"zero_variable"`, of its variable.

    What it cannot repair, because it happens before the optimizer is asked: moving
    statistics of `BatchNormalization`, states of a `stateful` recurrent layer and
    running metrics that took in a NaN (in `fit`, `tfsafe.callbacks.NumericsMonitor`
    puts these back); weights that are NaN already; a forward pass that overflows on
    every batch. Then the bad steps do not end: see `max_consecutive`. Nor does it
    shrink a gradient within the limit, and a single 1e4 among ones stalls Adam for
    thousands of steps. Clip as well: `SafeOptimizer("adam", global_clipnorm=1.0)`, or
    leave such steps out: `outlier_threshold`.

    Variables in float16 and bfloat16 are trained as float32 copies (*master weights*)
    with float32 slots, and get their values rounded. In slots of their own dtype, Adam
    does not move a bfloat16 variable at all, because `beta_2` rounds to 1. A value that
    is assigned to such a variable is gone on from. Keras' `SwapEMAWeights` swaps the
    copies alone: use `tfsafe.callbacks.SwapEMAWeights` for these.

    Keras takes this optimizer wherever it takes the inner one, and `learning_rate`,
    `iterations`, `weight_decay`, `clipnorm`, `use_ema`, `loss_scale_factor`,
    `gradient_accumulation_steps` and their like are the inner optimizer's, to read
    and to set. What belongs to one algorithm (`beta_1`) is at `inner_optimizer`.
    Under the policy mixed_float16, `compile` puts a `LossScaleOptimizer` around it,
    which skips float16 overflows on its own account: they do not count here. Put
    `tfsafe.optimizers.LossScaleOptimizer` there, whose scale cannot fall to 0.

    Args:
      inner_optimizer: Keras optimizer: instance, name or config.
      policy: `"replace"`, `"zero_variable"` or `"skip"`.
      limit: Largest magnitude of a gradient's element, positive; `math.inf` to let
        all finite numbers pass. None takes 1e15, and 1e150 for float64 variables.

        Derivation: the optimizer squares `g`, and a clipping norm sums the squares of
        `N` elements, so that `limit` must stay below `sqrt(max / N)`. In float32,
        1e15 does up to `N` = 3.4e8; in float64, 1e150 up to 1.8e8. Gradients of a
        model that learns are many orders of magnitude smaller. Every finite float16
        gradient passes. With `loss_scale_factor`, the limit holds for the unscaled
        gradient.

        With `clipnorm` or `global_clipnorm` up to 1e15, None lets all finite numbers
        pass: they are clipped before they are squared.
      clipnorm: Largest norm of the gradient of each variable; a larger one is scaled
        down to it. As in Keras' optimizers, but the norm does not overflow: Keras
        makes 0 of a gradient of 3e19, in float16 of 300. The inner optimizer must not
        clip then, and the attribute `clipnorm` is the wrapper's. With gradient
        accumulation, each micro-batch is clipped.
      global_clipnorm: The same for the norm of all gradients together. Keras makes
        NaN of every variable there.
      outlier_threshold: Leaves out, whatever the policy, each step whose gradients are
        much longer than they use to be, by this many standard deviations; 6 is a usual
        choice. None takes steps of any length. A step is an outlier if

          log(norm) > mean + max(outlier_threshold * deviation, log(2)),

        where `norm` is that of all gradients together, without the loss scale and
        before the clipping, and mean and deviation are those of `log(norm)` over the
        last steps that were taken. Derivation: norms are products of many factors, so
        that their logarithm is near to normal, and one ten times too long shifts the
        mean over `n` steps by `log(10) / n` only. Bad steps, outliers and zero
        gradients never enter. Below twice the usual norm nothing is an outlier, lest
        an almost constant norm make outliers of rounding errors.
      outlier_window: So many steps are in the mean, with exponential weights after
        the first ones; as many are taken without a judgement at the start.
      outlier_patience: So many outliers in a row are a new level: the last of them is
        taken, and the statistic starts anew with it.
      max_consecutive: This many bad steps in a row raise `NumericsError`; None never
        does. In eager execution `apply` raises it. A compiled step cannot: call
        `raise_if_stuck` after it, as `tfsafe.callbacks.NumericsMonitor` does in `fit`.
      count_elements: Whether to count the bad elements of each variable, for
        `last_nonfinite_elements`; a test for any is cheaper.
      name: Name of the wrapper.

    Attributes:
      inner_optimizer: The wrapped optimizer.
      steps: How many steps were asked for, good and bad. This and the following are
        Python values; reading one waits for the device.
      nonfinite_steps: How many of them were bad.
      consecutive_nonfinite_steps: How many bad ones there were since the last good
        one. If it keeps growing, the model is beyond what an optimizer can mend.
      was_nonfinite: Whether the last step was bad.
      last_nonfinite_step: Number of the last bad step, from 1; 0 for none.
      nonfinite_steps_by_variable: In how many steps each gradient was bad, by path.
      outlier_steps: How many steps were left out as outliers. They are not bad.
      last_nonfinite_variables: Paths of the variables whose gradient was bad in it.
      last_nonfinite_elements: How many elements were bad in it, by path, for these
        variables; with `count_elements=True`. Replicas add up.
      counters: The counting variables by name, for use in compiled code.

    Raises:
      ValueError: If an argument is no Keras optimizer or out of range, the inner
        optimizer is a `SafeOptimizer` or a `LossScaleOptimizer`, or more than one
        clipping is asked for.

    Numerics:
      NaN, +Inf, -Inf      bad; "replace" makes it 0, "zero_variable" its variable
      0 in all gradients   left out after a replacement; a step like any other without
      abs(g) > limit       bad, as above
      abs(g) <= limit      passed on bit for bit
      log(norm) high       the whole step left out, with `outlier_threshold`
      norm > clipnorm      scaled down; a smaller one is passed on bit for bit
      None                 passed on; if all are None, Keras' ValueError
      `IndexedSlices`      stay sparse
      float16, bfloat16    stepped in float32, rounded once
      replicas             bad on one is bad on all: one decision, one count
      overwrite_with_gradient
                           only NaN and infinity are bad, and keep the old value;
                           never clipped

    Counters, statistic and copies are saved and restored with the optimizer, in
    `.keras` and `.weights.h5` files and in `tf.train.Checkpoint`. An optimizer that was
    saved without a wrapper is loaded without, and then wrapped: `SafeOptimizer(
    model.optimizer)`; with `tf.train.Checkpoint`, restore `inner_optimizer`.

    References:
      Micikevicius et al., "Mixed Precision Training", ICLR 2018, for the copies.

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

      In `fit`, with the count beside the loss:

      >>> import tfsafe
      >>> model = keras.Sequential([keras.Input((2,)), keras.layers.Dense(1)])
      >>> model.compile(SafeOptimizer("adam", policy="skip"), "mse")
      >>> history = model.fit(
      ...     tf.ones((8, 2)), tf.ones((8, 1)), verbose=0,
      ...     callbacks=[tfsafe.callbacks.NumericsMonitor()],
      ... )
      >>> history.history["nonfinite_steps"]
      [0]
    """

    def __init__(
        self,
        inner_optimizer: Any,
        policy: str = "replace",
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
        super().__init__(name)
        self._made_under = tf.distribute.get_strategy()
        self.inner_optimizer = _arguments.inner_optimizer(inner_optimizer)
        self._copies = self._copies_of([])
        self.policy = _args.one_of(policy, POLICIES, "policy")
        self.limit = _arguments.limit(limit)
        self._set_clipping(
            *_arguments.clipping(clipnorm, global_clipnorm, self.inner_optimizer)
        )
        self._set_outliers(outlier_threshold, outlier_window, outlier_patience)
        self.max_consecutive = _arguments.max_consecutive(max_consecutive)
        self.count_elements = bool(count_elements)

    def _copies_of(self, variables: Sequence[Any]) -> _master_copies.MasterCopies:
        return _master_copies.MasterCopies(
            self.inner_optimizer, variables, self.add_variable
        )

    def _set_outliers(self, threshold: Any, window: Any, patience: Any) -> None:
        self.outlier_threshold = _arguments.outlier_threshold(threshold)
        self.outlier_window = _arguments.steps(window, "outlier_window", 2)
        self.outlier_patience = _arguments.steps(patience, "outlier_patience", 1)
        if self.outlier_threshold is not None:
            self._outliers = self._add_counter("outlier_steps")
            self._norms = _outliers.NormStatistic(
                self.outlier_threshold,
                self.outlier_window,
                self.outlier_patience,
                self.add_variable,
            )

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the slots of the inner optimizer, and what belongs to each variable.

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
        self._add_flags(variables)
        self._copies = self._copies_of(variables)
        if not self.inner_optimizer.built:
            self._copies.exclude_from_weight_decay()
            self.inner_optimizer.build(self._copies.of(variables))
        self.built = True

    def apply(self, grads: Any, trainable_variables: Any = None) -> None:
        """Takes one step, or leaves it out.

        Args:
          grads: One gradient per variable: `Tensor`, `IndexedSlices` or None.
          trainable_variables: The variables; None for those of `build`.

        Raises:
          ValueError: If there are more or fewer gradients than variables, all of them
            are None, or a strategy is in scope and this is not within its `run`.
          NumericsError: In eager execution, if this is the `max_consecutive`-th bad
            step in a row.
        """
        _arguments.check_strategy(self._made_under, self.inner_optimizer)
        grads = list(grads)
        has_gradient = any(gradient is not None for gradient in grads)
        has_variables = trainable_variables is not None or self.inner_optimizer.built
        if not (has_gradient and has_variables):
            # Keras' answer: nothing to do, or its ValueError. Asked for before there
            # is a branch, which would hide it.
            self.inner_optimizer.apply(grads, trainable_variables)
            return
        if trainable_variables is None:
            trainable_variables = (
                self._copies.variables
                if self.built
                else _compat.built_variables(self.inner_optimizer)
            )
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
        if limit is None and self._lets_all_finite_pass():
            limit = math.inf
        scale = self.loss_scale_factor
        within = [
            _gradient_check.is_within(gradient, variable, limit, scale)
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        positions = _compat.variable_positions(self.inner_optimizer, variables)
        size, in_elements = len(self._paths), self.count_elements
        bad = _gradient_check.bad_counts(within, positions, size, in_elements)
        flags = bad > 0
        is_bad = tf.reduce_any(flags)
        if self.policy != "skip":
            if self.policy == "zero_variable":
                within = [~flags[position] for position in positions]
            triples = zip(grads, variables, within, strict=True)
            grads = [_gradient_check.replace(*triple) for triple in triples]
        left_out = self._left_out(is_bad, grads, variables)
        _branch.unless(left_out, lambda g: self._step(g, variables), grads)
        self._count(is_bad, flags, bad if self.count_elements else flags)

    def _left_out(
        self, is_bad: tf.Tensor, grads: list[Any], variables: list[Any]
    ) -> tf.Tensor:
        """Returns whether to leave the step out."""
        left_out = is_bad
        if self.policy != "skip":
            left_out = _gradient_check.nothing_left(is_bad, grads, variables)
        if self._norms is None:
            return left_out
        norm = _outliers.log_global_norm(grads, variables, self.loss_scale_factor)
        norm = tf.where(left_out, -math.inf, norm)
        is_outlier = self._norms.leaves_out(norm, is_bad)
        self._outliers.assign_add(tf.cast(is_outlier, tf.int64))
        return is_outlier | left_out

    def _step(self, grads: list[Any], variables: list[Any]) -> None:
        with self.for_the_copies():
            self.inner_optimizer.apply(self._clipped(grads, variables), variables)

    def finalize_variable_values(self, var_list: Any) -> None:
        """Writes the inner optimizer's moving averages into the variables."""
        with self.for_the_copies():
            super().finalize_variable_values(self._copies.of(var_list))

    @contextlib.contextmanager
    def for_the_copies(self) -> Iterator[None]:
        """Makes what is written to float32 copies hold for their variables.

        The inner optimizer knows these copies in the place of variables in half
        precision. Each step does this by itself.

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

    def get_config(self) -> dict[str, Any]:
        """Returns the constructor's arguments."""
        return {
            "name": self.name,
            "inner_optimizer": keras.saving.serialize_keras_object(
                self.inner_optimizer
            ),
            "policy": self.policy,
            "limit": self.limit,
            "clipnorm": self._own_clipnorm,
            "global_clipnorm": self._own_global_clipnorm,
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
