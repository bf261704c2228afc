"""Checking a Keras model: the steps of `fit`, `evaluate` and `predict`."""

import functools
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe.debugging import _results, _state
from tfsafe.debugging._compiled import CompiledCheck
from tfsafe.debugging._eager import EagerCheck

_MAKERS = ("make_train_function", "make_test_function", "make_predict_function")


def check_model(model: keras.Model, strict: bool) -> keras.Model:
    """Makes a model run its steps under the checks; see `checked`.

    Keras asks `make_train_function` and its two siblings for the function that it
    then calls once a batch; they are what a model is customised by, and replaced here.

    Returns:
      The model.

    Raises:
      ValueError: If the model makes these functions in a way of its own, or is trained
        on several replicas.
    """
    own = [name for name in _MAKERS if _is_own(model, name)]
    if own:
        raise ValueError(
            f"`checked` replaces `{own[0]}`, which this model defines itself. "
            f"Received: target={model.name!r} of class {type(model).__name__}. Apply "
            "`tfsafe.checked` to the step inside that function instead."
        )
    replicas = model.distribute_strategy.num_replicas_in_sync
    if replicas > 1:
        raise ValueError(
            "`checked` follows a model on one device. Received: a model under "
            f"{type(model.distribute_strategy).__name__} with {replicas} replicas. "
            "Look for the failure on one replica first."
        )
    steps = _Steps(model, strict)
    model.make_train_function = steps.make_train_function
    model.make_test_function = steps.make_test_function
    model.make_predict_function = steps.make_predict_function
    # Keras keeps the functions that it made before.
    model.train_function = model.test_function = model.predict_function = None
    return model


def _is_own(model: keras.Model, name: str) -> bool:
    return getattr(type(model), name) is not getattr(keras.Model, name)


class _Steps:
    """The three functions that Keras calls once a batch, checked."""

    def __init__(self, model: keras.Model, strict: bool):
        self._model = model
        self._strict = strict

    def make_train_function(self, force: bool = False) -> Any:
        """Sets `model.train_function`."""
        model = self._model
        if model.train_function is None or force:
            model.train_function = self._over_batches(self._check(model.train_step))
        return model.train_function

    def make_test_function(self, force: bool = False) -> Any:
        """Sets `model.test_function`."""
        model = self._model
        if model.test_function is None or force:
            model.test_function = self._over_batches(self._check(model.test_step))
        return model.test_function

    def make_predict_function(self, force: bool = False) -> Any:
        """Sets `model.predict_function`."""
        model = self._model
        if model.predict_function is None or force:
            step = self._check(model.predict_step)

            def predict(batches: Sequence[Any]) -> Any:
                outputs = [step(batch) for batch in batches]
                if len(outputs) == 1:
                    return outputs[0]
                return tf.nest.map_structure(lambda *each: tf.concat(each, 0), *outputs)

            model.predict_function = predict
        return model.predict_function

    def _check(self, step: Callable[[Any], Any]) -> Callable[..., Any]:
        model = self._model

        @tf.autograph.experimental.do_not_convert
        def one_step(data: Any) -> Any:
            return model.distribute_strategy.run(step, args=(data,))

        if model.run_eagerly:
            eager = EagerCheck(
                one_step,
                strict=self._strict,
                variables=self._variables,
                names=self._names,
                labels=_batch_labels,
            )
            return lambda data, *_: eager(_without_optionals(data))

        make = functools.partial(
            _CompiledStep,
            one_step,
            jit_compile=model.jit_compile,
            strict=self._strict,
            names=self._names,
        )
        known: dict[str, _CompiledStep] = {}

        def run(data: Any, spec: Any = None) -> Any:
            key = repr(spec)
            if key not in known:
                known[key] = make(spec)
            return known[key](_without_optionals(data))

        return run

    def _over_batches(self, step: Callable[..., Any]) -> Callable[[Any], Any]:
        # Several steps a call, as `steps_per_execution` asks, but each one checked:
        # so that the batch which fails is known.
        def run(iterator: Iterator[Any]) -> Any:
            # What Keras' own step sees of the shapes: the size of the batch is open.
            spec = getattr(iterator, "element_spec", None)
            logs = step(next(iterator), spec)
            for _ in range(self._model.steps_per_execution - 1):
                try:
                    batch = next(iterator)
                except StopIteration:
                    break
                logs = step(batch, spec)
            return logs

        return run

    def _keras_variables(self) -> list[Any]:
        optimizer = getattr(self._model, "optimizer", None)
        return [*self._model.variables, *(optimizer.variables if optimizer else [])]

    def _variables(self) -> list[tf.Variable]:
        return list(_state.variables_in(self._keras_variables()))

    def _names(self) -> _state.Names:
        return {
            id(handle.handle): each.path
            for each in self._keras_variables()
            for handle in _state.variables_in(each)
        }


class _CompiledStep:
    """One step as a checked `tf.function`.

    Args:
      step: Takes a batch.
      spec: What is known of the batch's parts, or None.
      jit_compile: Whether XLA compiles the step.
      strict: As in `checked`.
      names: Names the variables.
    """

    def __init__(
        self,
        step: Callable[[Any], Any],
        spec: Any,
        *,
        jit_compile: bool,
        strict: bool,
        names: _state.NamesOf,
    ):
        self._spec = spec
        if spec is None:
            function = tf.function(step, reduce_retracing=True, jit_compile=jit_compile)
            labels, signature = _batch_labels, None
        else:
            # The parts alone: a signature has no room for a part that is None.
            labels, signature = self._labels, [self._parts(spec)]

            @tf.autograph.experimental.do_not_convert
            def of_parts(parts: Sequence[Any]) -> Any:
                return step(self._batch(parts))

            function = tf.function(
                of_parts, input_signature=signature, jit_compile=jit_compile
            )
        self._check = CompiledCheck(
            function, strict=strict, names=names, labels=labels, signature=signature
        )

    def __call__(self, data: Any) -> Any:
        return self._check(data if self._spec is None else self._parts(data))

    @staticmethod
    def _parts(data: Any) -> list[Any]:
        flat = tf.nest.flatten(_without_optionals(data))
        return [part for part in flat if part is not None]

    def _batch(self, parts: Sequence[Any]) -> Any:
        given = iter(parts)
        empty = _without_optionals(self._spec)
        return tf.nest.map_structure(
            lambda each: None if each is None else next(given), empty
        )

    def _labels(
        self,
        function: Callable[..., Any],
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ) -> _results.Labelled:
        del function
        return _batch_labels(lambda data: data, [self._batch(args[0])], kwargs)


_OPTIONALS = (tf.experimental.Optional, tf.OptionalSpec)


def _without_optionals(data: Any) -> Any:
    """Turns the empty optionals, which Keras feeds for a missing part, into None."""
    return tf.nest.map_structure(
        lambda each: None if isinstance(each, _OPTIONALS) else each, data
    )


def _batch_labels(
    function: Callable[..., Any], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> _results.Labelled:
    """Names the parts of a batch as `fit` does."""
    for label, value in _results.argument_labels(function, args, kwargs):
        for index, name in enumerate(("x", "y", "sample_weight")):
            if label.startswith(f"data[{index}]"):
                label = name + label.removeprefix(f"data[{index}]")
        yield label, value
