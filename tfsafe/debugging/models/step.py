"""Makes one step of a Keras model a checked `tf.function`."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.state import variables
from tfsafe.debugging.tracing import results


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
