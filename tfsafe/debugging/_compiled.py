"""Checking a `tf.function`: one cheap look at each call, a replay when it fails."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import _results, _state, _values
from tfsafe.debugging._rerun import Rerun, written_slots
from tfsafe.debugging._state import Held, Slot
from tfsafe.errors import NumericsError
from tfsafe.graph import UnreadableError


class CompiledCheck:
    """Calls a `tf.function` and raises if its results are not finite.

    The function is called inside another one, which also hands out the values that
    its variables had before, and one sum over all that came out. If that sum is not
    finite, the variables are put back and the function is run again, operation by
    operation, to see where the bad values begin.

    Args:
      function: The `tf.function`, or a concrete function.
      strict: Whether a non-finite value on the way is an error too.
      names: Better names for variables, by `id` of the handle.
      labels: Names the arguments.
      signature: The one with which the function was made, if all its calls pass just
        these arguments by position.
    """

    def __init__(
        self,
        function: Any,
        *,
        strict: bool,
        names: _state.NamesOf = dict,
        labels: _results.Labels = _results.argument_labels,
        signature: Sequence[Any] | None = None,
    ):
        self._function = function
        self._strict = strict
        self._names = names
        self._labels = labels
        self._signature = signature
        self._slots: list[Slot] = []
        self._watched: Any = None
        self._is_xla = False
        self._serves_many = False

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Returns:
          What the function returns.

        Raises:
          NumericsError: If a result is not finite.
        """
        if self._watched is None:
            # Traced out here, where it may create its variables.
            concrete = self._concrete(args, kwargs)
            self._is_xla = _compat.is_xla(concrete.function_def)
            self._watched = self._watching()
        if self._strict:
            self._look_ahead(args, kwargs)
        result, total, before = self._watched(*args, **kwargs)
        if np.isfinite(total):
            return result
        held = [(self._slots[int(key)], value) for key, value in before.items()]
        bad = _results.bad_outputs(result)
        bad += _results.bad_variables(slot for slot, _ in held)
        # The sum of finite numbers can overflow.
        if not bad:
            return result
        raise self._explained(args, kwargs, result, bad, held)

    def _concrete(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if not hasattr(self._function, "get_concrete_function"):
            return self._function
        return self._function.get_concrete_function(*args, **kwargs)

    def _watching(self) -> Any:
        return tf.function(
            self._watch,
            input_signature=self._signature,
            autograph=False,
            jit_compile=self._is_xla or None,
            reduce_retracing=self._serves_many,
        )

    def _watch(self, *args: Any, **kwargs: Any) -> Any:
        concrete = self._concrete(args, kwargs)
        if not self._serves_many and _serves_many_shapes(concrete):
            # From the next call on, one trace of ours does so too.
            self._serves_many = True
            self._watched = self._watching()
        names = self._names()
        slots = written_slots(concrete, names)
        for leaf in tf.nest.flatten((args, kwargs)):
            if isinstance(leaf, tf.Variable):
                slots.append(_state.slot_of(leaf, names))
        before = {self._key(slot): slot.read() for slot in slots}
        result = self._function(*args, **kwargs)
        # These reads see what the function wrote.
        after = [slot.read() for slot in slots]
        return result, _total([result, after]), before

    def _key(self, slot: Slot) -> str:
        for index, known in enumerate(self._slots):
            if known.handle is slot.handle:
                return str(index)
        self._slots.append(slot)
        return str(len(self._slots) - 1)

    def _rerun(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Rerun:
        return Rerun(
            self._function, args, kwargs, names=self._names(), labels=self._labels
        )

    def _look_ahead(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Runs the call operation by operation first, and undoes it."""
        rerun = self._rerun(args, kwargs)
        held = [(slot, slot.read()) for slot in rerun.slots]
        try:
            trail, _, _ = rerun.follow(held, xla=False)
        except UnreadableError as error:
            raise ValueError(
                f"`strict=True` cannot look into this function: {error}. Use "
                "`strict=False`."
            ) from None
        finally:
            _state.put_back(held)
        if trail.all:
            raise _results.error(
                [_results.Bad("", None, origins=frozenset(trail.all[:1]))],
                batch=self._batch_size(args, kwargs),
                restored=len(held),
            )

    def _explained(
        self,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
        result: Any,
        bad: Sequence[_results.Bad],
        held: Sequence[Held],
    ) -> NumericsError:
        """Finds out why results are bad; leaves the variables as before the call."""
        _state.put_back(held)
        try:
            told, reason = self._rerun(args, kwargs).explain(result, bad, held)
        # Whatever stands in the way of an explanation, the failure is to be told.
        except (UnreadableError, TypeError, ValueError, tf.errors.OpError) as error:
            told, reason = bad, f"{error}."
        finally:
            _state.put_back(held)
        return _results.error(
            told,
            batch=self._batch_size(args, kwargs),
            restored=len(held),
            reason=reason,
        )

    def _batch_size(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> int | None:
        return _results.batch_size(list(self._labels(self._function, args, kwargs)))


def _serves_many_shapes(concrete: Any) -> bool:
    own = len(concrete.inputs) - len(concrete.captured_inputs)
    return any(not each.shape.is_fully_defined() for each in concrete.inputs[:own])


def _total(structure: Any) -> tf.Tensor:
    """Returns a sum that is finite only if every number in the structure is."""
    sums = [tf.constant(0.0, tf.float64)]
    for each in tf.nest.flatten(structure, expand_composites=True):
        if not _values.is_float(each):
            continue
        if each.dtype.is_complex:
            each = tf.math.real(each) + tf.math.imag(each)
        if each.dtype.size < 4:
            each = tf.cast(each, tf.float32)
        sums.append(tf.cast(tf.reduce_sum(each), tf.float64))
    return tf.add_n(sums)
