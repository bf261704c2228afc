"""Makes the steps and the call of a Keras model run in their stable form."""

import functools
import warnings
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained, hide_frames, or_plain
from tfsafe._patching import Patch, patches_on
from tfsafe.errors import NumericsError
from tfsafe.rewriting.engine import tape_recording
from tfsafe.rewriting.engine.function import stabilized
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.reports.report import Report, report_of
from tfsafe.rewriting.reports.verify import verified
from tfsafe.rewriting.rules import table
from tfsafe.rewriting.targets.replicas import MakeFunction

_STEPS = ("train_step", "test_step", "predict_step")
# The methods that make the functions of a model, and where Keras keeps these.
_MAKERS = {
    "make_train_function": "train_function",
    "make_test_function": "test_function",
    "make_predict_function": "predict_function",
}
_METHODS = (*_STEPS, *_MAKERS, "call")


def stabilize_model(
    model: keras.Model, rules: Sequence[Rule], verify: bool = False
) -> keras.Model:
    """Makes a model run in its stable form; see `stabilize`."""
    _remove(model)
    # Entering the default strategy is not entering a strategy.
    with model.distribute_strategy.scope():
        is_distributed = tf.distribute.has_strategy()
    if is_distributed:
        for name, kept in _MAKERS.items():
            make = functools.partial(MakeFunction, model=model, name=kept, rules=rules)
            Patch(model, name, make).install()
    else:
        step = functools.partial(_Step, rules=rules, verify=verify)
        for name in _STEPS:
            Patch(model, name, step).install()
    call = functools.partial(ModelCall, model=model, rules=rules, verify=verify)
    Patch(model, "call", call).install()
    # Keras keeps the functions that it made before.
    model.train_function = model.test_function = model.predict_function = None
    return model


def is_stable(model: keras.Model) -> bool:
    """Returns whether the steps of a model run in their stable form."""
    return bool(_stable(model, "call"))


def restore_model(model: keras.Model) -> None:
    """Undoes `stabilize_model`."""
    _remove(model)
    model.train_function = model.test_function = model.predict_function = None


def model_report(
    model: keras.Model, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Report:
    """Reports on the train step of a model, or on its prediction if it has no loss."""
    batch = (*args, *kwargs.values())
    if len(batch) == 1 and isinstance(batch[0], tuple):
        (batch,) = batch
    name = "train_step" if getattr(model, "optimizer", None) else "predict_step"
    steps = [p.wrapper for p in _stable(model, name) if isinstance(p.wrapper, _Step)]
    if not steps:
        steps = [_Step(getattr(model, name), table.all_rules(), verify=False)]
    return report_of(steps[0].function, [batch], {})


def _remove(model: keras.Model) -> None:
    for name in _METHODS:
        for patch in _stable(model, name):
            patch.remove()


def _stable(model: keras.Model, name: str) -> list[Patch]:
    ours = (_Step, ModelCall, MakeFunction)
    return [p for p in patches_on(model, name) if isinstance(p.wrapper, ours)]


class _Step:
    """A step of a model; not a `tf.function`, which an export would save too.

    Attributes:
      is_graph: The step is a graph with `run_eagerly` too, and is checked as one.
    """

    is_graph = True

    def __init__(self, step: Any, rules: Sequence[Rule], verify: bool):
        self._step = step
        self._rules = rules
        self._verify = verify
        hide_frames()
        self._make()
        functools.update_wrapper(self, step, updated=())

    def _make(self) -> None:
        step, rules = self._step, self._rules
        self._optimizer = self._current_optimizer()
        self.function = stabilized(
            tf.function(step, autograph=False, reduce_retracing=True), rules
        )
        self._run = self.function
        if self._verify:
            self._run = verified(step, rules, autograph=False)

    def _current_optimizer(self) -> Any:
        model = getattr(self._step, "__self__", None)
        return getattr(model, "optimizer", None)

    def __call__(self, data: Any) -> Any:
        if self._current_optimizer() is not self._optimizer:
            # Compiled again: the first trace may create the optimizer's variables.
            self._make()
        return or_plain(
            "the stable form of a step",
            lambda: self._run(data),
            lambda: self._step(data),
        )


_TASK = "the stable form of the call of a model"
_PLAIN_TYPES = (bool, int, float, str, type(None))


class ModelCall:
    """Replaces the method `call` of a model, which `model(x)` and exports run.

    Not a `tf.function`, which an export would save as well.
    """

    def __init__(
        self, call: Any, model: keras.Model, rules: Sequence[Rule], verify: bool
    ):
        self._call = call
        self._model = model
        self._layers: list[Any] = []
        self._is_plain = False
        traced = tf.function(self._whole, autograph=False, reduce_retracing=True)
        self.function = stabilized(traced, rules)
        self._run = verified(traced, rules) if verify else self.function
        functools.update_wrapper(self, call, updated=())

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the model; plainly where it is part of a larger trace of ours."""
        prepared = None
        with contained(_TASK):
            prepared = self._prepared(args, kwargs)
        if prepared is None:
            return _compat.as_converted(self._call)(*args, **kwargs)
        try:
            outputs, marks, losses = self._run(args, kwargs, *prepared)
        except NumericsError:
            raise
        except Exception as error:
            # The model as written may need no trace, and then an error of its Python
            # code in a trace is ours.
            result = _compat.as_converted(self._call)(*args, **kwargs)
            self._is_plain = True
            warnings.warn(
                f"Calls of the model {self._model.name!r} run as written, because the "
                f"trace of one failed: {type(error).__name__}: {error}",
                RuntimeWarning,
                stacklevel=2,
            )
            return result
        with contained(_TASK):
            _attach(outputs, marks)
            for layer, added in zip(self._layers, losses, strict=True):
                _compat.added_losses(layer).extend(added)
        return outputs

    def _prepared(self, args: Any, kwargs: Any) -> tuple[Any, Any] | None:
        """Returns what a trace needs besides the arguments; None for a plain call."""
        # Who runs functions eagerly, as `retain_gradients` does, looks at the layers.
        is_eager = tf.config.functions_run_eagerly()
        if self._is_plain or is_eager or tape_recording.active() is not None:
            return None
        leaves = tf.nest.flatten((args, kwargs))
        context = tuple(sorted(_compat.call_context().items()))
        known = [*leaves, *(value for _, value in context)]
        if _compat.is_stateless() or not all(map(_is_traceable, known)):
            return None
        self._layers = _compat.all_layers(self._model)
        # What Python code reads while it is traced.
        key = context, tuple(bool(layer.trainable) for layer in self._layers)
        return [_attached(each) for each in leaves], key

    def _whole(self, args: Any, kwargs: Any, attached: Any, key: Any) -> Any:
        """Calls the model; returns what it attaches to its outputs and layers too."""
        del key
        _attach((args, kwargs), attached)
        counts = [len(_compat.added_losses(each)) for each in self._layers]
        try:
            outputs = self._call(*args, **kwargs)
            losses = [
                _compat.added_losses(layer)[count:]
                for layer, count in zip(self._layers, counts, strict=True)
            ]
        finally:
            # The losses of a trace are useless outside of it.
            for layer, count in zip(self._layers, counts, strict=True):
                del _compat.added_losses(layer)[count:]
        return outputs, [_attached(x) for x in tf.nest.flatten(outputs)], losses


def _is_traceable(leaf: Any) -> bool:
    # A functional model gets arrays as they are; others get tensors from Keras.
    is_array = isinstance(leaf, np.ndarray) and leaf.dtype.kind in "biuf"
    is_tensor = tf.is_tensor(leaf) and not keras.utils.is_keras_tensor(leaf)
    return isinstance(leaf, _PLAIN_TYPES) or is_array or is_tensor


def _attached(tensor: Any) -> tuple[Any, Any]:
    """Returns what Keras attaches to a tensor, which no trace takes along."""
    return _compat.keras_mask(tensor), _compat.keras_logits(tensor)


def _attach(tensors: Any, attached: Sequence[tuple[Any, Any]]) -> None:
    for each, (mask, logits) in zip(tf.nest.flatten(tensors), attached, strict=True):
        if mask is not None:
            _compat.set_keras_mask(each, mask)
        _compat.set_keras_logits(each, logits)
