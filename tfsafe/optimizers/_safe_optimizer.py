"""The optimizer wrapper that one bad gradient cannot ruin."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args, _compat
from tfsafe.optimizers import _arguments, _gradient_check
from tfsafe.optimizers._accounting import CountingOptimizer

POLICIES = ("replace", "skip")


@keras.saving.register_keras_serializable(package="tfsafe")
class SafeOptimizer(CountingOptimizer):
    """Wraps a Keras optimizer so that a bad gradient costs one step, not the model.

    A Keras optimizer writes one NaN into its weights and slots, and they stay NaN. A
    finite gradient of 1e20 does the same two steps later, because Adam squares it:
    that is how LSTMs on long sequences die, and why a test for NaN, a
    `LossScaleOptimizer` and `global_clipnorm` do not save them.

    Before anything else happens to a gradient `g`, the inner optimizer's clipping
    included, each of its elements must pass `abs(g) <= limit`. NaN, infinity and
    whatever would overflow in the optimizer fail. A step with an element that fails
    is bad, *non-finite* for short, and `policy` says what becomes of it:

    - `"replace"`: the elements that failed become 0 and the step is taken. The good
      part of the gradient counts, so this is the choice where it is mostly good:
      independent heads, embeddings, a few bad weights. `iterations`, schedule,
      momentum and weight decay go on.
    - `"skip"`: nothing changes, neither weights nor slots, `iterations`, schedule,
      moving averages, accumulated gradients. Training goes on bit for bit as if
      the batch had not been there. A micro-batch of a gradient accumulation that is
      bad is left out, and another takes its place. This is the choice where bad
      steps are whole (after an LSTM one bad time step spoils the whole kernel) or
      come in long runs.

    Both bias Adam. Where a fraction `p` of all steps is bad as a whole, weights move
    `sqrt(1 - p)` times as far as on clean data with `"replace"`, and `1 - p` times
    with `"skip"`, which is exactly the good steps. The former is more only because
    zeros shrink Adam's second moment: each good step is `1 / sqrt(1 - p)` times as
    long, 3.2 times at `p = 0.9`, and the first ones after a long run of bad steps
    overshoot. Meanwhile stale momentum and weight decay keep moving the weights.

    What it cannot repair: the moving statistics of `BatchNormalization`, the states
    of a `stateful` recurrent layer and the metrics of a bad batch, which are NaN
    before the optimizer is asked; weights that are NaN already; a forward pass that
    overflows on every batch. It makes no unstable model stable. Then the bad steps do
    not end, which `max_consecutive` is for. A gradient within the limit that is large
    all the same can still stall Adam for thousands of steps: clip as well,
    `SafeOptimizer(keras.optimizers.Adam(global_clipnorm=1.0))`.

    Keras takes this optimizer wherever it takes the inner one, and `learning_rate`,
    `iterations`, `weight_decay`, `clipnorm`, `use_ema`, `loss_scale_factor`,
    `gradient_accumulation_steps` and their like are the inner optimizer's, to read
    and to set. What belongs to one algorithm (`beta_1`) is at `inner_optimizer`.
    Under the policy mixed_float16, `compile` puts a `LossScaleOptimizer` around it,
    which skips float16 overflows on its own account: they do not count here.

    Args:
      inner_optimizer: Keras optimizer: instance, name or config.
      policy: `"replace"` or `"skip"`.
      limit: Largest magnitude of a gradient's element, positive; `math.inf` to let
        all finite numbers pass. None takes, by the variable's dtype,

          float32, bfloat16   1e15
          float64             1e150
          float16             65504, the largest: NaN and infinity alone are bad.

        Derivation: the optimizer squares `g`, and a clipping norm sums the squares
        of `N` elements, so `limit` must stay below `sqrt(max / N)`. 1e15 does for
        `N` up to 3.4e8 in float32, 1e150 up to 1.8e8 in float64. Ordinary gradients
        are ten orders of magnitude below. In float16 that bound would be under 256
        and refuse ordinary gradients: keep float16 variables out of optimizers (the
        policy mixed_float16 does). Where `loss_scale_factor` is set, the limit holds
        for the unscaled gradient.
      max_consecutive: This many bad steps in a row raise `NumericsError`; None never
        does. In eager execution `apply` raises it. A compiled step cannot: call
        `raise_if_stuck` after it, which `tfsafe.callbacks.NumericsMonitor` does in
        `fit`.
      name: Name of the wrapper.

    Attributes:
      inner_optimizer: The wrapped optimizer.
      counters: Dictionary of the five counting variables, for use in compiled code.

    Raises:
      TypeError: If `inner_optimizer` is no Keras optimizer.
      ValueError: If another argument is out of range, or the inner optimizer is a
        `SafeOptimizer` or a `LossScaleOptimizer`.

    Numerics:
      NaN, +Inf, -Inf         bad; "replace" makes it 0
      limit < abs(g)          bad; "replace" makes it 0
      abs(g) <= limit         passed on bit for bit
      None                    passed on
      no gradient at all      Keras' ValueError
      `IndexedSlices`         stay sparse, tested slice by slice
      replicas                a bad gradient on one is a bad step on all
      overwrite_with_gradient variables  only NaN and infinity are bad; "replace"
                              keeps the variable's value

    The counters are saved and restored with the weights, in `.keras` and `.weights.h5`
    files and in `tf.train.Checkpoint`. To put an optimizer that is saved without a
    wrapper into one, load first and wrap then: `SafeOptimizer(model.optimizer)`. With
    `tf.train.Checkpoint`, restore `optimizer.inner_optimizer`.

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

      In `fit`, with the counts beside the loss:

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
        max_consecutive: int | None = None,
        name: str | None = None,
    ):
        super().__init__(name)
        self.inner_optimizer = _arguments.inner_optimizer(inner_optimizer)
        self.policy = _args.one_of(policy, POLICIES, "policy")
        self.limit = _arguments.limit(limit)
        self.max_consecutive = _arguments.max_consecutive(max_consecutive)

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
        scale = self.loss_scale_factor
        within = [
            _gradient_check.is_within(gradient, variable, self.limit, scale)
            for gradient, variable in zip(grads, variables, strict=True)
        ]
        flags = self._reduced_flags(within, variables)
        is_bad = tf.reduce_any(flags)
        if self.policy == "skip":
            self._step_unless(is_bad, grads, variables)
        else:
            triples = zip(grads, variables, within, strict=True)
            replaced = [_gradient_check.replace(*triple) for triple in triples]
            self.inner_optimizer.apply(replaced, variables)
        self._count(is_bad, flags)

    def _reduced_flags(self, within: list[Any], variables: list[Any]) -> tf.Tensor:
        """Returns for each variable whether its gradient is bad on any replica."""
        # float32: reductions across devices know no booleans.
        flags = [tf.constant(0.0)] * len(self._paths)
        positions = _compat.variable_positions(self.inner_optimizer, variables)
        for position, ok in zip(positions, within, strict=True):
            if ok is not None:
                flags[position] = tf.cast(~tf.reduce_all(ok), tf.float32)
        total = tf.stack(flags)
        if tf.distribute.has_strategy():
            replica = tf.distribute.get_replica_context()
            total = replica.all_reduce(tf.distribute.ReduceOp.SUM, total)
        return total > 0

    def _step_unless(
        self, is_bad: tf.Tensor, grads: list[Any], variables: list[Any]
    ) -> None:
        """Lets the inner optimizer step in a branch, which a bad step never enters."""

        def step(grads: list[Any]) -> None:
            self.inner_optimizer.apply(grads, variables)

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
            "max_consecutive": self.max_consecutive,
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
