"""Checking a Keras model: the steps of `fit`, `evaluate` and `predict`."""

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

    def _check(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        model = self._model

        @tf.autograph.experimental.do_not_convert
        def one_step(data: Any) -> Any:
            return model.distribute_strategy.run(step, args=(data,))

        labels = _batch_labels
        if model.run_eagerly:
            check: Any = EagerCheck(
                one_step,
                strict=self._strict,
                variables=self._variables,
                names=self._names,
                labels=labels,
            )
        else:
            compiled = tf.function(
                one_step, reduce_retracing=True, jit_compile=model.jit_compile
            )
            check = CompiledCheck(
                compiled, strict=self._strict, names=self._names, labels=labels
            )
        return lambda data: check(_without_optionals(data))

    def _over_batches(self, step: Callable[[Any], Any]) -> Callable[[Any], Any]:
        # Several steps a call, as `steps_per_execution` asks, but each one checked:
        # so that the batch which fails is known.
        def run(iterator: Iterator[Any]) -> Any:
            logs = step(next(iterator))
            for _ in range(self._model.steps_per_execution - 1):
                try:
                    batch = next(iterator)
                except StopIteration:
                    break
                logs = step(batch)
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


def _without_optionals(data: Any) -> Any:
    """Turns the empty optionals, which Keras feeds for a missing part, into None."""
    return tf.nest.map_structure(
        lambda each: None if isinstance(each, tf.experimental.Optional) else each, data
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
