"""Takes several checked steps in one call, as `steps_per_execution` asks."""

import math
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.debugging.checks import tally
from tfsafe.debugging.checks.tally import TALLY
from tfsafe.debugging.checks.traced.watched_call import Body, Kept
from tfsafe.debugging.models.step import CompiledStep


class Failure(NamedTuple):
    """The first step of a call whose sum is not finite.

    Attributes:
      argument: What the function of the step took.
      outputs: What the check of the step returned: result, sum, and what to examine.
    """

    argument: Any
    outputs: tuple[Any, Any, Kept]


class Part(NamedTuple):
    """Steps of one call: some good ones, or a single one that is to be examined.

    Attributes:
      steps: How many.
      results: What the last of the good steps returned.
      failure: The step to examine, or None.
    """

    steps: int
    results: Any = None
    failure: Failure | None = None


class Execution:
    """Takes checked steps in a compiled loop, which ends at the first failed one.

    The loop commits nothing of a failed step and draws no further batch. It returns the
    batch with the values to examine, and the state is that before the step. A caller
    that goes on asks for the steps that are left.
    """

    def __init__(self, step: CompiledStep, spec: Any):
        self._step = step
        self._spec = spec
        self._is_off = False
        self._watched: Any = None
        self._loop: Any = None
        self._once: Any = None
        self._packers: list[_Packer] = []

    @property
    def is_off(self) -> bool:
        """Whether the steps must be taken one by one, after a fault in the check."""
        return self._is_off or self._step.check.is_off

    def give_up(self) -> None:
        """Has the steps taken one by one from now on."""
        self._is_off = True

    def take(self, iterator: Any, at_most: int) -> list[Part]:
        """Takes steps until one fails, the data end or there were `at_most`.

        Returns:
          At most two parts, the good steps and the failed one.
        """
        with tally.entered():
            self._prepare()
            numbers, results, failure = self._loop(iterator, tf.constant(at_most))
            count, has_failed = numbers.numpy().tolist()
        TALLY.calls += count + has_failed
        parts = []
        if count:
            parts.append(Part(count, self._packers[0].unpacked(results)))
        if has_failed:
            parts.append(Part(1, failure=self._failure(failure)))
        return parts

    def take_one(self, iterator: Any) -> list[Part]:
        """Takes a step, unless the data end; a loop would cost more than the step."""
        with tally.entered():
            self._prepare()
            try:
                argument, outputs = self._once(iterator)
            except tf.errors.OutOfRangeError:
                return []
            is_good = math.isfinite(outputs[1].numpy())
        TALLY.calls += 1
        if is_good:
            return [Part(1, outputs[0])]
        return [Part(1, failure=Failure(argument, outputs))]

    def examined(self, part: Part) -> Any:
        """Returns the results of a part.

        Raises:
          NumericsError: If it is a step that failed.
        """
        if part.failure is None:
            return part.results
        argument, outputs = part.failure
        return self._step.check.examined([argument], outputs)

    def plain(self, part: Part) -> Any:
        """Takes the step to examine, unchecked."""
        return (
            self._step.check.function(part.failure.argument) if part.failure else None
        )

    def _failure(self, optional: tf.Tensor) -> Failure:
        argument, outputs = self._packers[1].unpacked(optional)
        return Failure(argument, outputs)

    def _prepare(self) -> None:
        watched = self._step.check.watched([self._step.argument(self._spec)], {})
        # A finding may have changed what the check does.
        if watched is self._watched:
            return

        @tf.autograph.experimental.do_not_convert
        def once(iterator: Any) -> Any:
            argument = self._step.argument(iterator.get_next())
            return argument, watched(argument)

        self._packers = [_Packer(), _Packer()]
        self._loop = self._made(watched)
        self._once = self._traced(once)
        self._watched = watched

    def _made(self, watched: Callable[[Any], Any]) -> Any:
        pack_results, pack_failure = (each.packed for each in self._packers)
        none = tf.raw_ops.OptionalNone

        @tf.autograph.experimental.do_not_convert
        def loop(iterator: Any, at_most: tf.Tensor) -> Any:
            def goes_on(count: Any, is_over: Any, *_: Any) -> Any:
                return (count < at_most) & ~is_over

            def body(count: Any, _: Any, results: Any, failure: Any) -> Any:
                given = iterator.get_next_as_optional()

                def step() -> Any:
                    argument = self._step.argument(given.get_value())
                    outputs = watched(argument)
                    is_good = tf.math.is_finite(outputs[1])
                    kept = tf.cond(
                        is_good,
                        lambda: (pack_results(outputs[0]), none()),
                        lambda: (results, pack_failure((argument, outputs))),
                    )
                    return count + tf.cast(is_good, tf.int32), ~is_good, *kept

                def end() -> Any:
                    return count, tf.constant(True), results, failure

                return tf.cond(given.has_value(), step, end)

            count, _, results, failure = tf.while_loop(
                goes_on, body, [tf.constant(0), tf.constant(False), none(), none()]
            )
            has_failed = tf.raw_ops.OptionalHasValue(optional=failure)
            return tf.stack([count, tf.cast(has_failed, tf.int32)]), results, failure

        return self._traced(loop)

    def _traced(self, run: Callable[..., Any]) -> Any:
        shown = Body(run, self._step.check.function)
        return tf.function(shown, autograph=False, reduce_retracing=True)


class _Packer:
    """Packs a structure of tensors, in which some may be None, into one optional.

    An optional costs a loop nothing where it stays empty.
    """

    def __init__(self) -> None:
        self._structure: Any = None
        self._dtypes: list[tf.DType] = []

    def packed(self, structure: Any) -> tf.Tensor:
        """Returns an optional with the tensors, within a trace."""
        tensors = [each for each in _leaves(structure) if each is not None]
        # All that a trace packs has the same structure.
        self._structure = structure
        self._dtypes = [each.dtype for each in tensors]
        if not tensors:
            # An optional cannot be empty and have a value.
            tensors = [tf.zeros([])]
        return tf.raw_ops.OptionalFromValue(components=tensors)

    def unpacked(self, optional: tf.Tensor) -> Any:
        """Returns the structure with the values of a call."""
        if not self._dtypes:
            return self._structure
        given = iter(
            tf.raw_ops.OptionalGetValue(
                optional=optional,
                output_types=self._dtypes,
                output_shapes=[tf.TensorShape(None)] * len(self._dtypes),
            )
        )
        values = [
            None if each is None else next(given) for each in _leaves(self._structure)
        ]
        return tf.nest.pack_sequence_as(self._structure, values, expand_composites=True)


def _leaves(structure: Any) -> Sequence[Any]:
    leaves: Sequence[Any] = tf.nest.flatten(structure, expand_composites=True)
    return leaves
