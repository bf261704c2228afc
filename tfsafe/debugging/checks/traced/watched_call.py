"""Describes what the function returns that is called in place of a checked one."""

import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import values
from tfsafe.debugging.checks.failures import Failed
from tfsafe.debugging.checks.replayed_call import written_slots
from tfsafe.debugging.state.variables import Names, Slot, slot_of

_SHOWN = "shown_by_tfsafe"


class Kept(NamedTuple):
    """What a call returns besides its result, to be examined if it failed.

    Attributes:
      look: Index of the `Look` of the trace.
      before: The values that the variables had.
      flags: Which operations made non-finite values.
      drawn: The outputs of operations that a replay cannot draw.
      absorbs: Whether a division turned an overflow into 0, or NaN chose an integer.
    """

    look: tf.Tensor
    before: Sequence[tf.Tensor]
    flags: tf.Tensor | None = None
    drawn: Sequence[Sequence[tf.Tensor]] = ()
    absorbs: tf.Tensor | None = None


class Body:
    """The Python function of a check; TensorFlow's messages show the user's function.

    TensorFlow counts traces by the code of a function, to warn of too many. An object
    has none, so that the checks of different functions are counted separately.

    Args:
      run: The function.
      function: The one to show, or what was made of it, see `note_shown`.
    """

    def __init__(self, run: Callable[..., Any], function: Any):
        self._run = run
        self._shown = _shown(getattr(function, "python_function", function))
        self.__name__ = getattr(self._shown, "__name__", "checked")

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Runs the body of the check."""
        return self._run(*args, **kwargs)

    def __repr__(self) -> str:
        return repr(self._shown)


def note_shown(function: Any, shown: Any) -> None:
    """Has messages show another function, the user's, in place of one of ours."""
    vars(function)[_SHOWN] = _shown(shown)


def _shown(function: Any) -> Any:
    return getattr(function, _SHOWN, function)


def bind(function: Any, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
    """Raises a TypeError if a function does not take these arguments."""
    try:
        signature = inspect.signature(function)
    except (TypeError, ValueError):
        return
    signature.bind(*args, **kwargs)
    if getattr(function, "input_signature", None) is not None:
        _compat.bind_to_signature(function, args, kwargs)


def serves_many_shapes(concrete: Any) -> bool:
    """Returns whether the shape of an argument is open."""
    own = len(concrete.inputs) - len(concrete.captured_inputs)
    return any(not each.shape.is_fully_defined() for each in concrete.inputs[:own])


def slots_written(concrete: Any, arguments: Any, names: Names) -> list[Slot]:
    """Returns the variables that a call may write."""
    slots = written_slots(concrete, names)
    for leaf in tf.nest.flatten(arguments):
        if isinstance(leaf, tf.Variable):
            slots.append(slot_of(leaf, names))
    return list({id(slot.handle): slot for slot in slots}.values())


def kind_of(failed: Failed) -> str:
    """Returns the kind of the first non-finite result."""
    for each in failed.nonfinite:
        return values.kind(values.numbers(each.value))
    return "a non-finite value"
