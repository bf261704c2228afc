"""Checks a `tf.function` without waiting for each call: the host looks now and then."""

import atexit
import sys
import weakref
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe._faults import or_plain
from tfsafe.debugging.checks import tally
from tfsafe.debugging.checks.failures import Failed
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.tally import TALLY
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.checks.traced.watched_call import Kept
from tfsafe.debugging.state import variables
from tfsafe.debugging.state.variables import Slot
from tfsafe.errors import NumericsError


class _Call(NamedTuple):
    """A call before its look: its arguments and what `watched` returned."""

    args: Sequence[Any]
    kwargs: Mapping[str, Any]
    result: Any
    total: tf.Tensor
    kept: Kept


class LateCheck(CompiledCheck):
    """Calls a `tf.function` and looks at its results after every few calls.

    From a call that failed on no call writes a variable, by a flag on the device, so
    that a later look explains that call from the state before it.

    Args:
      function: The `tf.function`, or a concrete function.
      options: The options of the check.
      look_every: After how many calls to look.
    """

    def __init__(self, function: Any, *, options: Options, look_every: int):
        super().__init__(function, options=options)
        self._look_every = look_every
        self._pending: list[_Call] = []
        # 1 from a call that failed on; a float, which every device holds.
        self._stopped: Any = None
        self._is_late = True
        _LIVING.add(self)

    def look(self) -> None:
        """Looks at the calls since the last look.

        Raises:
          NumericsError: If one of them failed.
        """
        pending, self._pending = self._pending, []
        if not pending:
            return
        with tally.entered():
            or_plain(
                "the check of a function",
                lambda: self._look_at(pending),
                lambda: None,
                self._give_up,
            )

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if not self._is_late:
            return super()._checked(args, kwargs)
        if self._stopped is None:
            self._stopped = tf.Variable(0.0, trainable=False, name="stopped")
        try:
            result, total, kept = self.watched(args, kwargs)(*args, **kwargs)
        except Exception:
            # What failed before may be the reason.
            self.look()
            raise
        # Nothing is written once a call failed: the variables keep their values.
        kept = kept._replace(before=())
        self._pending.append(_Call(args, kwargs, result, total, kept))
        if len(self._pending) >= self._look_every:
            self.look()
        return result

    def _look_at(self, pending: Sequence[_Call]) -> None:
        TALLY.calls += len(pending)
        first = self._calls
        self._calls += len(pending)
        if not self._stopped.numpy():
            for call in pending:
                self._past.add(call.result)
            return
        self._stopped.assign(0.0)
        totals = tf.stack([call.total for call in pending]).numpy()
        place = int(np.argmin(np.isfinite(totals)))
        for call in pending[:place]:
            self._past.add(call.result)
        self._calls, self._later = first + place + 1, len(pending) - place - 1
        try:
            self._examined_late(pending[place])
        finally:
            self._calls, self._later = first + len(pending), 0
        # It did not fail, as where the sum of finite numbers overflows.
        self._is_late = False
        self._watched = self._watching()
        for call in pending[place:]:
            self(*call.args, **call.kwargs)

    def _examined_late(self, call: _Call) -> None:
        slots = self._looks[int(call.kept.look)].kept
        kept = call.kept._replace(before=[slot.read() for slot in slots])
        self._examined(call.args, call.kwargs, call.result, kept)

    def _failed(self, result: Any, kept: Kept) -> Failed:
        failed = super()._failed(result, kept)
        if not self._is_late:
            return failed
        look = self._looks[int(kept.look)]
        return failed._replace(frozen=[*look.frozen, *look.kept])

    def _called_again(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        # A look calls what did not fail again itself.
        return None if self._is_late else super()._called_again(args, kwargs)

    def _may_write(
        self,
        total: tf.Tensor,
        before: Sequence[tf.Tensor],
        kept: Sequence[Slot],
    ) -> tf.Tensor:
        is_good = super()._may_write(total, before, kept)
        if not self._is_late:
            return is_good
        is_good &= tf.equal(self._stopped, 0.0)

        def put_back() -> tf.Tensor:
            variables.restore(zip(kept, before, strict=True))
            return is_good

        if kept:
            tf.cond(is_good, lambda: is_good, put_back)
        self._stopped.assign(tf.where(is_good, 0.0, 1.0))
        return is_good


_LIVING: weakref.WeakSet[LateCheck] = weakref.WeakSet()


def look_at_all() -> None:
    """Looks at the calls of each function since its last look.

    Raises:
      NumericsError: If one of them failed.
    """
    for check in list(_LIVING):
        check.look()


@atexit.register
def _look_at_the_end() -> None:
    for check in list(_LIVING):
        try:
            check.look()
        except NumericsError as error:
            # The traceback has only our own lines.
            sys.excepthook(type(error), error.with_traceback(None), None)
