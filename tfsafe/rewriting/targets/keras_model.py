"""Makes the steps of a Keras model run in their stable form."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe._faults import or_plain
from tfsafe._patching import Patch, patches_on
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.reports.report import Report, report_of
from tfsafe.rewriting.reports.verify import verified
from tfsafe.rewriting.rules import table
from tfsafe.rewriting.targets.function import stabilized

_STEPS = ("train_step", "test_step", "predict_step")


def stabilize_model(
    model: keras.Model, rules: Sequence[Rule], verify: bool = False
) -> keras.Model:
    """Makes a model run its steps in their stable form; see `stabilize`.

    Returns:
      The model.

    Raises:
      ValueError: If the model is trained on several replicas.
    """
    replicas = model.distribute_strategy.num_replicas_in_sync
    if replicas > 1:
        raise ValueError(
            "`stabilize` rewrites the steps of a model on one device. Received: a "
            f"model under {type(model.distribute_strategy).__name__} with {replicas} "
            "replicas. Stabilize its loss, or the function that makes the prediction "
            "and the loss together."
        )
    for name in _STEPS:
        for patch in _stable(model, name):
            patch.remove()
        make = functools.partial(_Step, rules=rules, verify=verify)
        Patch(model, name, make).install()
    # Keras keeps the functions that it made before.
    model.train_function = model.test_function = model.predict_function = None
    return model


def is_stable(model: keras.Model) -> bool:
    """Returns whether the steps of a model run in their stable form."""
    return bool(_stable(model, "train_step"))


def restore_model(model: keras.Model) -> None:
    """Undoes `stabilize_model`."""
    for name in _STEPS:
        for patch in _stable(model, name):
            patch.remove()
    model.train_function = model.test_function = model.predict_function = None


def model_report(
    model: keras.Model, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Report:
    """Reports on the train step of a model, or on its prediction if it has no loss.

    Args:
      model: The model, stabilised or not.
      args: Parts of a batch.
      kwargs: The same by the names `x`, `y` and `sample_weight`.

    Returns:
      The report.
    """
    batch = (*args, *kwargs.values())
    name = "train_step" if getattr(model, "optimizer", None) else "predict_step"
    steps = [p.wrapper for p in _stable(model, name) if isinstance(p.wrapper, _Step)]
    if not steps:
        steps = [_Step(getattr(model, name), table.all_rules(), verify=False)]
    return report_of(steps[0].function, [batch], {})


def _stable(model: keras.Model, name: str) -> list[Patch]:
    return [p for p in patches_on(model, name) if isinstance(p.wrapper, _Step)]


class _Step:
    """A step of a model; not a `tf.function`, which an export would save too.

    Args:
      step: The model's own.
      rules: The rules to apply.
      verify: As in `stabilize`.
    """

    def __init__(self, step: Any, rules: Sequence[Rule], verify: bool):
        self.function = stabilized(
            tf.function(step, autograph=False, reduce_retracing=True), rules
        )
        self._step = step
        self._run = self.function
        if verify:
            self._run = verified(step, rules, autograph=False)
        functools.update_wrapper(self, step, updated=())

    def __call__(self, data: Any) -> Any:
        return or_plain(
            "the stable form of a step",
            lambda: self._run(data),
            lambda: self._step(data),
        )
