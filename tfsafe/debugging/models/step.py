"""Makes one step of a Keras model a checked `tf.function`.

Notes what its optimizer receives and does, and joins the results of replicas.
"""

import contextlib
import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.checks.traced.watched_call import note_shown
from tfsafe.debugging.explain.training.history import (
    HALF_OF_SQUARES,
    LARGEST_UPDATE,
    bits,
)
from tfsafe.debugging.models import loss_scale
from tfsafe.debugging.state import variables
from tfsafe.debugging.tracing import results
from tfsafe.ops.nn import clipping


class CompiledStep:
    """One step as a checked `tf.function`."""

    def __init__(
        self,
        step: Callable[[Any], Any],
        spec: Any,
        *,
        jit_compile: bool,
        names: variables.NamesOf,
        options: Options,
    ):
        self._spec = spec
        if spec is None:
            function = tf.function(step, reduce_retracing=True, jit_compile=jit_compile)
            labels, signature = batch_labels, None
        else:
            # The parts alone: a signature has no room for a part that is None.
            labels, signature = self._labels, [self._parts(spec)]

            @tf.autograph.experimental.do_not_convert
            def of_parts(parts: Sequence[Any]) -> Any:
                return step(self._batch(parts))

            note_shown(of_parts, step)
            function = tf.function(
                of_parts, input_signature=signature, jit_compile=jit_compile
            )
        self._function = function
        self._check = CompiledCheck(
            function, options=options, names=names, labels=labels, signature=signature
        )

    def __call__(self, data: Any) -> Any:
        """Takes the step, checked."""
        return self._check(self.argument(data))

    def plain(self, data: Any) -> Any:
        """Takes the step, unchecked."""
        return self._function(self.argument(data))

    @property
    def check(self) -> CompiledCheck:
        """The check of the function, whose one argument is that of `argument`."""
        return self._check

    def argument(self, data: Any) -> Any:
        """Returns what the function takes for a batch."""
        return data if self._spec is None else self._parts(data)

    @staticmethod
    def _parts(data: Any) -> list[Any]:
        flat = tf.nest.flatten(without_optionals(data))
        return [part for part in flat if part is not None]

    def _batch(self, parts: Sequence[Any]) -> Any:
        given = iter(parts)
        empty = without_optionals(self._spec)
        return tf.nest.map_structure(
            lambda each: None if each is None else next(given), empty
        )

    def _labels(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> results.Labelled:
        del function
        return batch_labels(lambda data: data, [self._batch(args[0])], kwargs)


_OPTIONALS = (tf.experimental.Optional, tf.OptionalSpec)


def without_optionals(data: Any) -> Any:
    """Turns the empty optionals, which Keras feeds for a missing part, into None."""
    return tf.nest.map_structure(
        lambda each: None if isinstance(each, _OPTIONALS) else each, data
    )


def batch_labels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> results.Labelled:
    """Names the parts of a batch as `fit` does."""
    for label, value in results.argument_labels(function, args, kwargs):
        for index, name in enumerate(("x", "y", "sample_weight")):
            if label.startswith(f"data[{index}]"):
                label = name + label.removeprefix(f"data[{index}]")
        # A data set without labels.
        if label == "data":
            label = "x"
        yield label, value


# Variables of so many bytes are not kept twice to see how far they move.
_LARGE = 2**26


@contextlib.contextmanager
def noted(optimizer: Any, level: str) -> Iterator[dict[str, tf.Tensor]]:
    """Notes what a step passes to an optimizer.

    A step at level `watch` computes one sum of squares a gradient, and of these one
    sum; it keeps no copy of a weight. A `SafeOptimizer` has these sums, and TensorFlow
    computes equal operations of a graph once.

    Args:
      optimizer: The optimizer of the step; None notes nothing.
      level: Level of the checks.

    Yields:
      The numbers by their labels, once the step is taken: half the sum of the squares
      of all gradients, the largest change of a weight, and
      `loss_scale.hidden_gradients`. The first two are `bits`: no check fails at them.
    """
    found: dict[str, tf.Tensor] = {}
    is_scaled = isinstance(optimizer, keras.optimizers.LossScaleOptimizer)
    is_looked_at = level != "watch"
    if not hasattr(optimizer, "apply"):
        yield found
        return
    apply, graph = optimizer.apply, _graph()

    def wrapped(grads: Any, trainable_variables: Any = None) -> Any:
        grads = list(grads)
        # A tensor of a branch or a loop cannot be used outside of it.
        is_known = optimizer.built or not is_scaled
        if not is_known or trainable_variables is None or _graph() is not graph:
            return apply(grads, trainable_variables)
        variables = list(trainable_variables)
        if is_scaled:
            pairs = zip(grads, variables, strict=False)
            found.update(loss_scale.hidden_gradients(optimizer, pairs))
        half = _half_of_squares(grads)
        if is_scaled:
            half /= tf.square(optimizer.dynamic_scale)
        found[HALF_OF_SQUARES] = bits(half)
        old = _values(variables) if is_looked_at else []
        result = apply(grads, variables)
        if old:
            moves = zip(old, _values(variables), strict=True)
            largest = [tf.reduce_max(tf.abs(new - each)) for each, new in moves]
            found[LARGEST_UPDATE] = bits(tf.reduce_max(tf.stack(largest)))
        return result

    optimizer.apply = wrapped
    try:
        yield found
    finally:
        del optimizer.apply


def _half_of_squares(gradients: Sequence[Any]) -> tf.Tensor:
    halves = []
    for each in gradients:
        values = each.values if isinstance(each, tf.IndexedSlices) else each
        if values is not None and values.dtype.is_floating:
            halves.append(tf.cast(clipping.half_of_squares(values), tf.float32))
    return tf.add_n(halves) if halves else tf.zeros([])


def _values(variables: Sequence[Any]) -> list[tf.Tensor]:
    """Returns the values of variables in float32; none if they are large."""
    sizes = [math.prod(each.shape) for each in variables]
    if 4 * sum(sizes) > _LARGE:
        return []
    return [
        tf.cast(tf.convert_to_tensor(each), tf.float32)
        for each, size in zip(variables, sizes, strict=True)
        if size
    ]


def _graph() -> Any:
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def check_strategy(model: keras.Model) -> None:
    """Refuses strategies that a replay cannot follow.

    Raises:
      ValueError: If the replicas are not those of one process.
    """
    reason = why_unchecked(model)
    if reason is not None:
        raise ValueError(reason)


def why_unchecked(model: keras.Model) -> str | None:
    """Returns why the replicas of a model cannot be followed, or None if they can."""
    strategy = model.distribute_strategy
    replicas = strategy.num_replicas_in_sync
    if replicas == 1 or isinstance(strategy, tf.distribute.MirroredStrategy):
        return None
    return (
        "The checks follow a model on the devices of one process. Received: a model "
        f"under {type(strategy).__name__} with {replicas} replicas. Look for the "
        "failure under `tf.distribute.MirroredStrategy`, or on one replica."
    )


def build_for_replicas(model: keras.Model, kind: str, data: Any) -> None:
    """Makes the variables of a model that the trace of its step would make.

    Within a replica, TensorFlow makes them by running the step, not by tracing it. What
    this cannot make, by an error of the program, the trace makes or raises.
    """
    strategy = model.distribute_strategy
    batch = tf.nest.map_structure(
        lambda each: strategy.experimental_local_results(each)[0], data
    )
    with contextlib.suppress(Exception), tf.init_scope(), strategy.scope():
        _compat.build_state(model, batch, has_targets=kind != "predict")


def mean(strategy: tf.distribute.Strategy, results: Any) -> Any:
    """Returns the means over the replicas of what a step returned."""
    if strategy.num_replicas_in_sync == 1:
        return results
    return tf.nest.map_structure(
        lambda each: tf.reduce_mean(strategy.experimental_local_results(each), 0),
        results,
    )


def joined(strategy: tf.distribute.Strategy, results: Any) -> Any:
    """Returns the rows of all replicas, in their order."""
    if strategy.num_replicas_in_sync == 1:
        return results
    return tf.nest.map_structure(
        lambda each: tf.concat(strategy.experimental_local_results(each), 0), results
    )
