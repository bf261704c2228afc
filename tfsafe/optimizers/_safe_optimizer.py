"""The optimizer wrapper that one bad gradient cannot ruin."""

import math
from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe.optimizers import _arguments, _gradient_check
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

    - `"replace"`: elements that fail become 0, and the step is taken. `iterations`,
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

    Both slow Adam down. If a fraction `p` of the steps is bad as a whole and the
    gradient is otherwise constant, weights move `1 - p` times as far with `"skip"`:
    exactly the good steps. With the others it is `sqrt(1 - p)` times: zeros shrink the
    second moment too, so that each good step is `1 / sqrt(1 - p)` times as long, 3.2
    times at `p = 0.9`. In a long run of bad steps they also go on with stale momentum
    and weight decay, and overshoot after it. With `"replace"`, `p` is that of the
    single weight; with `"zero_variable"`, the larger one of its variable.

    What it cannot repair, because it happens before the optimizer is asked: moving
    statistics of `BatchNormalization`, states of a `stateful` recurrent layer and
    running metrics that took in a NaN (in `fit`, `tfsafe.callbacks.NumericsMonitor`
    puts these back); weights that are NaN already; a forward pass that overflows on
    every batch. Then the bad steps do not end: see `max_consecutive`. Nor does it
    shrink a gradient within the limit, and a single 1e4 among ones stalls Adam for
    thousands of steps. Clip as well: `SafeOptimizer("adam", global_clipnorm=1.0)`.

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
        all finite numbers pass. None takes, by the variable's dtype,

          float32, bfloat16   1e15
          float64             1e150
          float16             65504, the largest: NaN and infinity alone are bad.

        Derivation: the optimizer squares `g`, and a clipping norm sums the squares of
        `N` elements, so that `limit` must stay below `sqrt(max / N)`. In float32,
        1e15 does up to `N` = 3.4e8; in float64, 1e150 up to 1.8e8. Gradients of a
        model that learns are many orders of magnitude smaller. In float16 the bound
        would be under 256 and refuse ordinary gradients: keep float16 variables out
        of optimizers, as the policy mixed_float16 does. With `loss_scale_factor`, the
        limit holds for the unscaled gradient.

        With `clipnorm` or `global_clipnorm` up to 1e15, None lets all finite numbers
        pass: they are clipped before they are squared.
      clipnorm: Largest norm of the gradient of each variable; a larger one is scaled
        down to it. As in Keras' optimizers, but the norm does not overflow: Keras
        makes 0 of a gradient of 3e19, in float16 of 300. The inner optimizer must not
        clip then, and the attribute `clipnorm` is the wrapper's. With gradient
        accumulation, each micro-batch is clipped.
      global_clipnorm: The same for the norm of all gradients together. Keras makes
        NaN of every variable there.
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
      abs(g) > limit       bad, as above
      abs(g) <= limit      passed on bit for bit
      norm > clipnorm      scaled down; a smaller one is passed on bit for bit
      None                 passed on; if all are None, Keras' ValueError
      `IndexedSlices`      stay sparse
      replicas             bad on one is bad on all: one decision, one count
      overwrite_with_gradient
                           only NaN and infinity are bad, and keep the old value;
                           never clipped

    The counters are saved and restored with the optimizer, in `.keras` and
    `.weights.h5` files and in `tf.train.Checkpoint`. An optimizer that was saved
    without a wrapper is loaded without, and then wrapped: `SafeOptimizer(
    model.optimizer)`; with `tf.train.Checkpoint`, restore `inner_optimizer`.

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
        max_consecutive: int | None = None,
        count_elements: bool = False,
        name: str | None = None,
    ):
        super().__init__(name)
        self.inner_optimizer = _arguments.inner_optimizer(inner_optimizer)
        self.policy = _args.one_of(policy, POLICIES, "policy")
        self.limit = _arguments.limit(limit)
        self._set_clipping(
            *_arguments.clipping(clipnorm, global_clipnorm, self.inner_optimizer)
        )
        self.max_consecutive = _arguments.max_consecutive(max_consecutive)
        self.count_elements = bool(count_elements)

    def build(self, variables: Sequence[Any]) -> None:
        """Creates the slots of the inner optimizer and one flag per variable.

        Args:
          variables: The variables to train.
        """
        if self.built:
            return
        variables = list(variables)
        if not self.inner_optimizer.built:
            self.inner_optimizer.build(variables)
        self._add_flags(variables)
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
        if tf.distribute.in_cross_replica_context():
            raise ValueError(
                "`apply` takes the step of one replica. Call it in a function that "
                "`strategy.run` runs, not directly under `strategy.scope()`."
            )
        grads = list(grads)
        has_gradient = any(gradient is not None for gradient in grads)
        has_variables = trainable_variables is not None or self.inner_optimizer.built
        if not (has_gradient and has_variables):
            # Keras' answer: nothing to do, or its ValueError. Asked for before there
            # is a branch, which would hide it.
            self.inner_optimizer.apply(grads, trainable_variables)
            return
        if trainable_variables is None:
            trainable_variables = _compat.built_variables(self.inner_optimizer)
        variables = list(trainable_variables)
        self.build(variables)
        with tf.name_scope(self.name):
            self._guarded_step(_tensors(grads, variables), variables)
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
        bad = self._reduced_counts(within, positions)
        flags = bad > 0
        is_bad = tf.reduce_any(flags)
        if self.policy == "skip":
            self._step_unless(is_bad, grads, variables)
        else:
            if self.policy == "zero_variable":
                within = [~flags[position] for position in positions]
            triples = zip(grads, variables, within, strict=True)
            replaced = [_gradient_check.replace(*triple) for triple in triples]
            self._step(replaced, variables)
        self._count(is_bad, bad if self.count_elements else flags)

    def _step(self, grads: list[Any], variables: list[Any]) -> None:
        self.inner_optimizer.apply(self._clipped(grads, variables), variables)

    def _reduced_counts(
        self, within: Sequence[Any], positions: Sequence[int]
    ) -> tf.Tensor:
        """Returns for each variable a number above 0 if it is bad on any replica.

        It is the number of bad elements on all of them, if that is to be counted.
        """
        # Reductions across devices know no booleans.
        dtype = tf.int64 if self.count_elements else tf.float32
        counts = [tf.zeros([], dtype)] * len(self._paths)
        for position, ok in zip(positions, within, strict=True):
            if ok is not None and self.count_elements:
                # Not by `~ok`: TensorFlow's graph optimizer makes `>` of the opposite
                # of `<=`, which a NaN fails as well.
                good = tf.reduce_sum(tf.cast(ok, dtype))
                counts[position] = tf.size(ok, dtype) - good
            elif ok is not None:
                # Not by the largest magnitude: XLA's `reduce_max` drops NaN on a CPU.
                counts[position] = tf.cast(~tf.reduce_all(ok), dtype)
        total = tf.stack(counts)
        if tf.distribute.has_strategy():
            replica = tf.distribute.get_replica_context()
            total = replica.all_reduce(tf.distribute.ReduceOp.SUM, total)
        return total

    def _step_unless(
        self, is_bad: tf.Tensor, grads: list[Any], variables: list[Any]
    ) -> None:
        """Lets the inner optimizer step in a branch, which a bad step never enters."""

        def step(grads: list[Any]) -> None:
            self._step(grads, variables)

        def step_on_all(strategy: Any, is_bad: Any, grads: list[Any]) -> None:
            tf.cond(
                # The same on all replicas.
                strategy.experimental_local_results(is_bad)[0],
                lambda: None,
                lambda: strategy.extended.call_for_each_replica(step, args=(grads,)),
            )

        if _compat.strategy_needs_merge_call():
            # A branch within a replica must not leave it, as the step has to: so the
            # branch is outside, and the replicas are within.
            replica = tf.distribute.get_replica_context()
            replica.merge_call(step_on_all, args=(is_bad, grads))
        else:
            tf.cond(is_bad, lambda: None, lambda: step(grads))

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


def _tensors(grads: list[Any], variables: list[Any]) -> list[Any]:
    if len(grads) != len(variables):
        raise ValueError(
            "`grads` and `trainable_variables` must be of equal length. Received: "
            f"{len(grads)} gradients and {len(variables)} variables. Pass None for a "
            "variable without gradient."
        )
    return [
        gradient
        if gradient is None or isinstance(gradient, tf.IndexedSlices)
        else tf.convert_to_tensor(gradient)
        for gradient in grads
    ]
