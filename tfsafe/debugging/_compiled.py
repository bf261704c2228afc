"""Checking a `tf.function`: one cheap look at each call, a replay when it fails."""

import math
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import _guard, _results, _state, _twin, _values, _verdict
from tfsafe.debugging._call import Call
from tfsafe.debugging._options import Options
from tfsafe.debugging._rerun import Rerun, written_slots
from tfsafe.debugging._state import Slot
from tfsafe.debugging._twin import Look
from tfsafe.debugging._verdict import Failed, Known
from tfsafe.graph import UnreadableError

_HINT = ' With checks="full" the operation is named all the same.'


class Kept(NamedTuple):
    """What a call hands out besides its result, to be looked at when it failed.

    Attributes:
      before: The values that the variables had, by `_key`.
      look: Index of what the trace looks at; None without flags and drawings.
      flags: Which operations gave numbers that are not finite.
      drawn: What operations gave that cannot give it again.
    """

    before: Mapping[str, tf.Tensor]
    look: Any = None
    flags: Any = None
    drawn: Any = ()


class CompiledCheck:
    """Calls a `tf.function` and raises if its results are not finite.

    The function is called inside another one, which also hands out the values that
    its variables had before, and one sum over all that came out. If that sum is not
    finite, the variables are put back and the function is run again, operation by
    operation, to see where the bad values begin.

    Where operations are to have flags, or draw from what a replay cannot rewind, the
    function is emitted again inside the other one, in place of the call.

    Args:
      function: The `tf.function`, or a concrete function.
      options: What the check is asked for.
      names: Better names for variables, by `id` of the handle.
      labels: Names the arguments.
      signature: The one with which the function was made, if all its calls pass just
        these arguments by position.
    """

    def __init__(
        self,
        function: Any,
        *,
        options: Options,
        names: _state.NamesOf = dict,
        labels: _results.Labels = _results.argument_labels,
        signature: Sequence[Any] | None = None,
    ):
        self._function = function
        self._options = options
        self._names = names
        self._labels = labels
        self._signature = signature
        self._slots: list[Slot] = []
        self._looks: list[Look] = []
        self._watched: Any = None
        self._is_xla = False
        self._serves_many = False
        self._known = Known()

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Returns:
          What the function returns.

        Raises:
          NumericsError: If a result is not finite.
        """
        with _guard.entered():
            if self._watched is None:
                # Traced out here, where it may create its variables.
                concrete = self._concrete(args, kwargs)
                self._is_xla = _compat.is_xla(concrete.function_def)
                self._watched = self._watching()
            result, total, kept = self._watched(*args, **kwargs)
            if not math.isfinite(total.numpy()):
                self._judge(args, kwargs, result, Kept(*kept))
            return result

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
        result, total, *kept = self._inside(concrete, args, kwargs)
        # These reads see what the function wrote.
        after = [slot.read() for slot in slots]
        return result, total + _total([result, after]), (before, *kept)

    def _inside(
        self, concrete: Any, args: Sequence[Any], kwargs: Mapping[str, Any]
    ) -> tuple[Any, ...]:
        """Calls the function or emits it; returns its result and `Kept`'s rest."""
        none = tf.constant(0.0, tf.float64)
        try:
            is_due = _twin.is_due(concrete, self._options)
        except UnreadableError as error:
            if self._options.strict:
                raise ValueError(
                    f"`strict=True` cannot look into this function: {error}. Use "
                    "`strict=False`."
                ) from None
            is_due = False
        if not is_due:
            return self._function(*args, **kwargs), none
        twin = _twin.emit(Call(self._function, args, kwargs), self._options)
        self._looks.append(twin.look)
        if self._options.strict:
            none = tf.where(tf.reduce_any(twin.flags), tf.constant(math.nan), 0.0)
        look = tf.constant(len(self._looks) - 1)
        return twin.result, tf.cast(none, tf.float64), look, twin.flags, twin.drawn

    def _key(self, slot: Slot) -> str:
        for index, known in enumerate(self._slots):
            if known.handle is slot.handle:
                return str(index)
        self._slots.append(slot)
        return str(len(self._slots) - 1)

    def _judge(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, kept: Kept
    ) -> None:
        """Raises if a call whose sum is not finite is a failure."""
        failed = self._failed(result, kept)
        # The sum of finite numbers can overflow.
        if not (failed.bad or (self._options.strict and failed.flagged)):
            return
        if self._known.covers(failed):
            return
        after = [(slot, slot.read()) for slot, _ in failed.held]
        told, reason = self._explained(args, kwargs, failed)
        if not told:
            _state.put_back(after)
            self._known.add(failed)
            return
        batch = _results.batch_size(list(self._labels(self._function, args, kwargs)))
        raise _verdict.error(told, failed, batch=batch, reason=reason)

    def _failed(self, result: Any, kept: Kept) -> Failed:
        held = [(self._slots[int(key)], value) for key, value in kept.before.items()]
        bad = _results.bad_outputs(result)
        bad += _results.bad_variables(slot for slot, _ in held)
        if kept.look is None:
            return Failed(result, bad, held)
        look = self._looks[int(kept.look)]
        return Failed(
            result,
            bad,
            held,
            _twin.raised(look, kept.flags),
            look.graphs,
            dict(zip(look.drawn, kept.drawn, strict=True)),
        )

    def _explained(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], failed: Failed
    ) -> tuple[Sequence[_results.Bad], str]:
        """Finds out why results are bad; leaves the variables as before the call."""
        _state.put_back(failed.held)
        try:
            rerun = Rerun(
                self._function, args, kwargs, names=self._names(), labels=self._labels
            )
            told, reason, origins = rerun.explain(failed)
        # Whatever stands in the way of an explanation, the failure is to be told.
        except (UnreadableError, TypeError, ValueError, tf.errors.OpError) as error:
            hint = "" if failed.flagged else _HINT
            return failed.bad or [_results.Bad("", None)], f"{error}.{hint}"
        finally:
            _state.put_back(failed.held)
        return _verdict.due(told, origins, self._options), reason


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
