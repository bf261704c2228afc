"""Finds the optimizer of a failed step, which knows its number and its rate."""

import contextlib
import inspect
import re
import sys
import threading
from collections.abc import Collection, Iterator, Sequence
from typing import Any

import keras
import numpy as np

from tfsafe._faults import contained
from tfsafe.debugging.explain.training.history import OVERFLOWS, is_of_size
from tfsafe.debugging.explain.training.layers import alive
from tfsafe.debugging.state.variables import variables_in
from tfsafe.errors import NumericsError

# A replay of this many seconds is announced.
_PATIENCE = 1.0

# Their steps are about as long as the learning rate, whatever the gradients are.
_ADAPTIVE = (
    keras.optimizers.Adam,
    keras.optimizers.Adamax,
    keras.optimizers.Lion,
    keras.optimizers.Nadam,
    keras.optimizers.RMSprop,
)
SCHEDULE = (
    "this learning rate is infinite or NaN, and one of 0 would train nothing: count "
    "the steps from 1, as step + 1 does, and keep a number of steps that is divided by "
    "at 1 or more, as max(warmup_steps, 1) does."
)
_PAST_THE_END = (
    "this learning rate is NaN: its schedule goes on after its last step. Hold it "
    "there, as tf.minimum(step, last_step) does, or bound its root or power below: "
    "tf.maximum(x, 0.0)."
)
_NO_MORE = (
    "this learning rate was {:.4g} at step 0 and is {:.4g} now: its schedule divides "
    "by 0. A decay_rate above 0 has no such step; or keep the divisor above 0, as "
    "tf.maximum(x, 1e-3) does."
)
_RAISED = (
    "the schedule has raised the learning rate from {:.4g} at step 0 to {:.4g}: choose "
    "one that falls, by a decay_rate below 1 for instance, or a lower peak."
)
_RAISED_BY = (
    "{} has raised the learning rate from {:.4g} in the first step to {:.4g}: have it "
    "lower the rate instead, or choose a lower peak."
)
_UPHILL = (
    "the learning rate {:.4g} is negative: each step goes uphill. Keep it above 0, as "
    "max(rate, 1e-6) does."
)
_BETAS = "beta_1", "beta_2"
# A hundred times the default of these optimizers.
_LARGE_RATE = 0.1
# A rate that is this many times the next of the same class is the one to lower.
_FAR = 10.0
# A schedule that has made the rate this many times as large has raised it.
_TIMES = 2.0


def optimizers_of(handles: Collection[Any] | None) -> list[Any]:
    """Returns the optimizers of a step, without their inner ones.

    Args:
      handles: Handles of the variables that the step uses; None if they are not
        known, as in an eager loop.

    Returns:
      The built optimizers that have some of these variables, or the only one that is
      alive; two of a GAN.
    """
    built = [
        each
        for each in alive(keras.optimizers.Optimizer)
        if getattr(each, "built", False)
    ]
    inner = {id(getattr(each, "inner_optimizer", None)) for each in built}
    outer = [each for each in built if id(each) not in inner]
    if handles is None:
        return outer if len(outer) == 1 else []
    ids = set(map(id, handles))
    return sorted(
        (each for each in outer if ids & _handles(each)), key=lambda each: each.name
    )


def _handles(optimizer: Any) -> set[int]:
    return {
        id(variable.handle)
        for each in optimizer.variables
        for variable in variables_in(each)
    }


def note(error: NumericsError, optimizer: Any) -> None:
    """Adds step, learning rate and loss scale to an error."""
    if optimizer is not None:
        error.step = int(_number(optimizer.iterations))
        error.learning_rate = _number(optimizer.learning_rate)
        error.loss_scale = _loss_scale(optimizer)
        error.facts["optimizer"] = _name(optimizer)
        while (inner := getattr(optimizer, "inner_optimizer", None)) is not None:
            optimizer = inner
        if error.findings:
            _note_rate(error, optimizer, error.learning_rate, error.step)
            _note_schedule(error, _rate_at_first(optimizer))
            _note_arguments(error, optimizer)
    error.add_time()


def _note_all(error: NumericsError, optimizers: Sequence[Any]) -> None:
    """Adds the step and the rate of each of several optimizers to an error."""
    error.optimizers = tuple(
        (each.name, int(_number(each.iterations)), _number(each.learning_rate))
        for each in optimizers
    )
    error.facts["optimizer"] = ", ".join(map(_name, optimizers))
    for each in optimizers:
        if error.findings:
            # The others may have made their step before the failure.
            _note_rate(error, each, _number(each.learning_rate), 1)
            _note_arguments(error, each)
    if error.findings:
        _note_largest_rate(error, optimizers)
    error.add_time()


def _note_largest_rate(error: NumericsError, optimizers: Sequence[Any]) -> None:
    """Names the learning rate that is far above those of optimizers of its class."""
    rates = sorted((_number(each.learning_rate), each.name) for each in optimizers)
    (usual, other), (largest, name) = rates[-2:]
    is_one_class = len({type(each) for each in optimizers}) == 1
    is_far = 0 < _FAR * usual <= largest
    if is_one_class and is_far and OVERFLOWS in error.findings[0].cause:
        error.add_suggestion(
            f"lower the learning rate {largest:.4g} of {name} first: that of {other} "
            f"is {usual:.4g}."
        )


def _rate_at_first(optimizer: Any) -> float:
    """Returns the learning rate of a schedule at step 0; 0 without a schedule."""
    kind = keras.optimizers.schedules.LearningRateSchedule
    schedules = [each for each in vars(optimizer).values() if isinstance(each, kind)]
    return _number(schedules[0](0)) if schedules else 0.0


def _note_schedule(error: NumericsError, before: float) -> None:
    """Suggests what to do about a learning rate that is not finite, negative or raised.

    Args:
      error: The error.
      before: The learning rate of the schedule at step 0; 0 without one.
    """
    first = error.findings[0]
    rate = error.learning_rate or 0.0
    is_made = first.origin == "" and not np.isfinite(rate)
    # Keras' callbacks set the variable.
    if is_made or first.origin.endswith("/learning_rate`"):
        of_zero = re.search(r"\b(zeros?|0 to the power)\b", first.cause)
        is_past = np.isnan(rate) and first.kind == "NaN" and not of_zero
        words = _PAST_THE_END if is_past else SCHEDULE
        if error.step and 0 < before < np.inf and not is_past:
            words = _NO_MORE.format(before, rate)
        error.change_first(suggested_code="", suggestion=words)
    elif rate < 0:
        error.add_suggestion(_UPHILL.format(rate))
    elif _is_raised(error, before):
        error.add_suggestion(_RAISED.format(before, rate))


def _is_raised(error: NumericsError, before: float) -> bool:
    """Returns whether the rate has risen, and the first finding may come of that."""
    rate = error.learning_rate or 0.0
    return 0 < _TIMES * before < rate and is_of_size(error.findings[0])


def note_raised(error: NumericsError, before: float, callbacks: Sequence[Any]) -> None:
    """Names what may have raised the learning rate from outside of the optimizer.

    Args:
      error: The error.
      before: The learning rate of the first step.
      callbacks: Those of the `fit`.
    """
    rate = error.learning_rate or 0.0
    if not (error.findings and rate < np.inf and _is_raised(error, before)):
        return
    # A schedule is named already.
    if "raised the learning rate" in error.findings[0].suggestion:
        return
    kind = keras.callbacks.LearningRateScheduler
    is_known = any(isinstance(each, kind) for each in callbacks)
    who = "LearningRateScheduler" if is_known else "a callback or the program"
    error.add_suggestion(_RAISED_BY.format(who, before, rate))


def _note_arguments(error: NumericsError, optimizer: Any) -> None:
    """Suggests arguments for an optimizer whose own divide 0 by 0."""
    first = error.findings[0]
    is_own = optimizer.name in first.scope.split("/")
    if not (is_own and first.op_type in {"RealDiv", "Sqrt"}):
        return
    defaults = inspect.signature(type(optimizer)).parameters
    betas = [each for each in _BETAS if getattr(optimizer, each, 0.0) >= 1]
    if betas:
        changed = {name: defaults[name].default for name in betas}
        below = " and ".join(f"{name} below 1" for name in betas)
        words = f"{below}: at 1 the mean never moves, and its bias correction is 0."
    elif first.op_type == "RealDiv" and getattr(optimizer, "epsilon", 1) == 0:
        changed = {"epsilon": 1e-7}
        words = "an epsilon: at 0, a weight whose gradients were all 0 moves by 0 / 0."
    else:
        return
    code = ""
    # A schedule need not tell its arguments.
    with contextlib.suppress(NotImplementedError):
        given = {**dict(_given(optimizer)), **changed}
        values = ", ".join(f"{name}={_written(each)}" for name, each in given.items())
        code = f"keras.optimizers.{type(optimizer).__name__}({values})"
    words = f"has your arguments and {words}" if code else f"give the optimizer {words}"
    error.change_first(suggested_code=code, suggestion=words)


def _written(value: object) -> str:
    return "1e-7" if value == 1e-7 else repr(value)


def _given(optimizer: Any) -> Iterator[tuple[str, Any]]:
    """Yields the arguments of an optimizer that are not the default of its class."""
    config = optimizer.get_config()
    for name, parameter in inspect.signature(type(optimizer)).parameters.items():
        value = config.get(name, parameter.default)
        if name == "name" or isinstance(value, dict):
            continue
        if isinstance(value, float):
            # As it was written: the variable of a rate has float32.
            value = float(np.format_float_positional(np.float32(value)))
        if value != parameter.default:
            yield name, value


def _note_rate(
    error: NumericsError, optimizer: Any, rate: float | None, step: int | None
) -> None:
    """Suggests a lower learning rate where it is unusually large, see `is_of_size`."""
    rate = rate or 0.0
    if not is_of_size(error.findings[0]) or not step:
        return
    if rate >= _LARGE_RATE and isinstance(optimizer, _ADAPTIVE):
        error.add_suggestion(
            f"{type(optimizer).__name__} moves every weight by about the learning rate "
            f"in each step: lower {rate:.4g} first, to 0.001 for example."
        )


def _name(optimizer: Any) -> str:
    """Returns the class of an optimizer, and in brackets that of its inner one."""
    name = type(optimizer).__name__
    inner = getattr(optimizer, "inner_optimizer", None)
    return name if inner is None else f"{name}({_name(inner)})"


def _loss_scale(optimizer: Any) -> float | None:
    while optimizer is not None:
        scale = getattr(optimizer, "dynamic_scale", None)
        if scale is not None:
            return _number(scale)
        optimizer = getattr(optimizer, "inner_optimizer", None)
    return None


def rate_of(optimizer: Any) -> float:
    """Returns the learning rate of an optimizer; 0 if it has none."""
    with contained("reading the learning rate"):
        return _number(getattr(optimizer, "learning_rate", 0.0))
    return 0.0


def _number(variable: Any) -> float:
    return float(keras.ops.convert_to_numpy(variable))


def note_time(error: NumericsError, handles: Collection[Any] | None) -> None:
    """Adds when a step failed, if it belongs to a training; see `optimizers_of`."""
    with contained("finding the step of a failure"):
        optimizers = optimizers_of(handles)
        if len(optimizers) == 1:
            note(error, optimizers[0])
        elif optimizers:
            _note_all(error, optimizers)


@contextlib.contextmanager
def announced(kind: str, handles: Collection[Any]) -> Iterator[None]:
    """Says on standard error what happens, if a replay takes long."""
    step = ""
    with contained("finding the step of a failure"):
        # Now: the replay changes the counter.
        counts = {int(_number(each.iterations)) for each in optimizers_of(handles)}
        if counts:
            step = f" at step {' and '.join(map(str, sorted(counts)))}"
    line = f"tfsafe: {kind}{step}; replaying the step to find where\n"
    timer = threading.Timer(_PATIENCE, sys.stderr.write, [line])
    # Python begins no thread while it ends.
    with contextlib.suppress(RuntimeError):
        timer.start()
    try:
        yield
    finally:
        timer.cancel()
        if timer.ident is not None:
            timer.join()
