"""A Keras model whose steps run in their stable form."""

import functools
from collections.abc import Mapping, Sequence
from typing import Any

import keras
import tensorflow as tf

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
        setattr(model, name, _Step(_own(getattr(model, name)), rules, verify))
    # Keras keeps the functions that it made before.
    model.train_function = model.test_function = model.predict_function = None
    return model


def is_stable(model: keras.Model) -> bool:
    """Returns whether the steps of a model run in their stable form."""
    return isinstance(model.train_step, _Step)


def restore_model(model: keras.Model) -> None:
    """Takes back what `stabilize_model` did."""
    for name in _STEPS:
        setattr(model, name, _own(getattr(model, name)))
    model.train_function = model.test_function = model.predict_function = None


def model_report(
    model: keras.Model, args: Sequence[Any], kwargs: Mapping[str, Any]
) -> Report:
    """Reports on the train step of a model, or on its prediction if it has no loss.

    Args:
      model: The model, stabilised or not.
      args: Parts of a batch.
      kwargs: Likewise, by the names `x`, `y` and `sample_weight`.

    Returns:
      The report.
    """
    batch = (*args, *kwargs.values())
    step = model.train_step if getattr(model, "optimizer", None) else model.predict_step
    if not isinstance(step, _Step):
        step = _Step(step, table.all_rules(), verify=False)
    return report_of(step.function, [batch], {})


def _own(step: Any) -> Any:
    return step.step if isinstance(step, _Step) else step


class _Step:
    """A step of a model; not a `tf.function`, which an export would take along.

    Args:
      step: The model's own.
      rules: The rules to apply.
      verify: As in `stabilize`.
    """

    def __init__(self, step: Any, rules: Sequence[Rule], verify: bool):
        self.step = step
        self.function = stabilized(
            tf.function(step, autograph=False, reduce_retracing=True), rules
        )
        self._run = self.function
        if verify:
            self._run = verified(step, rules, autograph=False)
        functools.update_wrapper(self, step, updated=())

    def __call__(self, data: Any) -> Any:
        return self._run(data)
