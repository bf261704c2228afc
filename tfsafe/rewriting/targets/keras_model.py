"""Makes the steps and the call of a Keras model run in their stable form."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe._faults import or_plain
from tfsafe._patching import Patch, patches_on
from tfsafe.rewriting.engine.function import stabilized
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.reports.report import Report, report_of
from tfsafe.rewriting.reports.verify import verified
from tfsafe.rewriting.rules import table
from tfsafe.rewriting.targets.model_call import ModelCall
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
    """A step of a model; not a `tf.function`, which an export would save too."""

    def __init__(self, step: Any, rules: Sequence[Rule], verify: bool):
        self._step = step
        self._rules = rules
        self._verify = verify
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
