"""Checks a `tf.function`: one cheap test of each call, a replay when it fails."""

import math
import time
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import or_plain, users_code
from tfsafe.debugging.capsule.snapshot import Snapshot
from tfsafe.debugging.checks import failures, measures, tally
from tfsafe.debugging.checks.failures import Failed, Known
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.replayed_call import ReplayedCall
from tfsafe.debugging.checks.tally import TALLY
from tfsafe.debugging.checks.traced import instrumented
from tfsafe.debugging.checks.traced.instrumented import Instrumented, Look
from tfsafe.debugging.checks.traced.watched_call import (
    Body,
    Kept,
    bind,
    kind_of,
    serves_many_shapes,
    slots_written,
)
from tfsafe.debugging.explain import message, refusals
from tfsafe.debugging.explain.training import growth, history, optimizer as training
from tfsafe.debugging.explain.training.layers import walked_once
from tfsafe.debugging.state import deferred_writes, variables
from tfsafe.debugging.state.variables import Slot
from tfsafe.debugging.tracing import results
from tfsafe.debugging.tracing.results import NonFinite
from tfsafe.errors import NumericsError
from tfsafe.graph import TracedCall, UnreadableError

_NAN = np.float64(math.nan)
_HINT = ' With checks="full" the operation is named all the same.'


class CompiledCheck:
    """Calls a `tf.function` and raises if its results are not finite.

    The function is called inside another one, which also returns the values that
    its variables had before, and one sum over all results. If that sum is not finite,
    the variables are restored and the function is replayed, operation by operation, to
    find where the non-finite values begin.

    Where that helps, a copy of the function is emitted inside the other one, in place
    of the call: with flags on its operations, with the random numbers that a replay
    cannot draw, and with its variables written at the end, only if the sum is finite.

    Args:
      function: The `tf.function`, or a concrete function.
      options: The options of the check.
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
        names: variables.NamesOf = dict,
        labels: results.Labels = results.argument_labels,
        signature: Sequence[Any] | None = None,
    ):
        self._function = function
        self._options = options
        self._names = names
        self._labels = labels
        self._signature = signature
        self._looks: list[Look] = []
        self._failed_before = False
        self._watched: Any = None
        self._is_xla = False
        self._serves_many = False
        self._known = Known()
        self._past = history.LastSteps()
        self._growth = growth.Growth([])
        self._calls = self._later = 0
        # Whether variables may be written at the end; what is excluded, and what
        # `strict` reports, is known only after the call.
        self._holds = not (options.strict or options.exclude)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        with tally.entered():
            if self._failed_before:
                return self._function(*args, **kwargs)
            return or_plain(
                "the check of a function",
                lambda: self._checked(args, kwargs),
                lambda: self._function(*args, **kwargs),
                self._give_up,
            )

    def _give_up(self) -> None:
        self._failed_before = True

    @property
    def function(self) -> Any:
        """The function that is checked."""
        return self._function

    @property
    def is_off(self) -> bool:
        """Whether a fault of the check has ended it; calls are plain from then on."""
        return self._failed_before

    def watched(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Returns the function that is called in place of the checked one.

        It returns the result, a sum that is finite if the call did not fail, and what
        `examined` needs.
        """
        if self._watched is None:
            # Traced out here, where it may create its variables.
            concrete = self._concrete(args, kwargs)
            self._is_xla = _compat.is_xla(concrete.function_def)
            self._watched = self._watching()
            used = _compat.living_variables(concrete)
            self._growth = growth.Growth([variables.slot_of(each, {}) for each in used])
        return self._watched

    def examined(self, args: Sequence[Any], outputs: tuple[Any, Any, Kept]) -> Any:
        """Examines a call of `watched` whose sum is not finite.

        Args:
          args: The arguments of the call.
          outputs: What it returned. Nothing may have changed the variables since.

        Returns:
          The result, if the call did not fail.

        Raises:
          NumericsError: If it failed.
        """
        result, _, kept = outputs
        with tally.entered():
            return or_plain(
                "the check of a function",
                lambda: self._examined(args, {}, result, kept),
                lambda: self._function(*args),
                self._give_up,
            )

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        with refusals.noted(lambda: self._replayed(args, kwargs).up_to_error()):
            result, total, kept = self.watched(args, kwargs)(*args, **kwargs)
        TALLY.calls += 1
        self._calls += 1
        if math.isfinite(total.numpy()):
            self._past.add(result)
            return result
        return self._examined(args, kwargs, result, kept)

    def _examined(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, kept: Kept
    ) -> Any:
        try:
            with walked_once():
                return self._raise_if_failed(args, kwargs, result, kept)
        except NumericsError:
            TALLY.failed += 1
            raise
        except Exception:
            # The call is repeated without a check.
            slots = self._looks[int(kept.look)].kept
            variables.restore(zip(slots, kept.before, strict=True))
            raise

    def _replayed(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> ReplayedCall:
        names, labels = self._names(), self._labels
        return ReplayedCall(self._function, args, kwargs, names=names, labels=labels)

    def _called_again(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        TALLY.calls, self._calls = TALLY.calls - 1, self._calls - 1
        return self(*args, **kwargs)

    def _concrete(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        if not hasattr(self._function, "get_concrete_function"):
            return self._function
        with users_code():
            return _compat.traced(self._function, *args, **kwargs)

    def _watching(self) -> Any:
        return tf.function(
            Body(self._watch, self._function),
            input_signature=self._signature,
            autograph=False,
            jit_compile=self._is_xla or None,
            reduce_retracing=self._serves_many,
        )

    def _watch(self, *args: Any, **kwargs: Any) -> Any:
        # Not marked as the program's: the plain call raises one with its arguments.
        bind(self._function, args, kwargs)
        concrete = self._concrete(args, kwargs)
        # A signature leaves one trace for all shapes anyway.
        is_open = self._signature is None and not self._serves_many
        if is_open and serves_many_shapes(concrete):
            # From the next call on, one trace of ours does so too.
            self._serves_many = True
            self._watched = self._watching()
        slots = slots_written(concrete, [args, kwargs], self._names())
        traced = self._instrumented(args, kwargs, slots)
        if traced is None:
            before = [slot.read() for slot in slots]
            with users_code():
                result = self._function(*args, **kwargs)
            self._looks.append(Look(slots))
            kept = Kept(self._last_look(), before)
            # These reads see what the function wrote.
            after = [slot.read() for slot in slots]
            total = deferred_writes.finite_sum([result, after])
            self._may_write(total, kept.before, slots)
            return result, total, kept
        before = [slot.read() for slot in traced.look.kept]
        traced.emit()
        self._looks.append(traced.look)
        new = [slot.read() for slot in traced.look.kept] + traced.frozen.values()
        total = deferred_writes.finite_sum([traced.result, new])
        if traced.absorbs is not None:
            total += tf.where(traced.absorbs, tf.constant(_NAN), 0)
        if self._options.strict:
            total += tf.where(tf.reduce_any(traced.flags), tf.constant(_NAN), 0)
        traced.frozen.commit(self._may_write(total, before, traced.look.kept))
        # A divisor in the update is tested with the new values.
        absorbs = ~tf.math.is_finite(total) if traced.frozen.divides else traced.absorbs
        kept = Kept(self._last_look(), before, traced.flags, traced.drawn, absorbs)
        return traced.result, total, kept

    def _may_write(
        self,
        total: tf.Tensor,
        before: Sequence[tf.Tensor],
        kept: Sequence[Slot],
    ) -> tf.Tensor:
        """Returns whether a call may write; `kept`, with values `before`, it has."""
        del before, kept
        return tf.math.is_finite(total)

    def _last_look(self) -> tf.Tensor:
        return tf.constant(len(self._looks) - 1)

    def _instrumented(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], slots: Sequence[Slot]
    ) -> Instrumented | None:
        """Returns what to emit in place of a call, if that helps."""
        try:
            call = TracedCall(self._function, args, kwargs)
            if not call.fits:
                raise TypeError("An argument has not the dtype that is expected.")
            traced = Instrumented(call, self._options, slots, holds=self._holds)
        except UnreadableError as error:
            self._options.note_unreadable(error)
            return None
        return traced if traced.is_due else None

    def _raise_if_failed(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], result: Any, kept: Kept
    ) -> Any:
        """Raises if a call whose sum is not finite is a failure; returns its result."""
        failed = self._failed(result, kept)
        is_flagged = self._options.strict and failed.flagged
        is_due = failed.nonfinite or failed.frozen or failed.absorbs or is_flagged
        # The sum of finite numbers can overflow.
        if not is_due or self._known.covers(failed):
            return result
        after = [(slot, slot.read()) for slot, _ in failed.held]
        start = time.monotonic()
        reported, reason = self._explained(args, kwargs, failed)
        if failed.frozen and not any(each.origins for each in reported):
            # Nothing is written yet: next time it is, and the results are checked.
            self._holds = False
            self._watched = self._watching()
            return self._called_again(args, kwargs)
        if not reported:
            variables.restore(after)
            self._known.add(failed)
            return result
        is_found = failed.flagged or any(each.origins for each in reported)
        # What refuses a replay, such as an iterator, cannot be run twice either.
        if not is_found and not reason.endswith(_HINT):
            failed = self._with_flags(args, kwargs, failed)
        error = message.numerics_error(
            reported,
            held=failed.held,
            reason=reason,
            findings=failures.by_flags(failed, reason),
            inputs=self._labels(self._function, args, kwargs),
            handles=self._handles(args, kwargs),
            is_xla=self._is_xla,
            later=self._later,
            steps=max(TALLY.steps, 1),
        )
        self._growth.note(error, self._calls - 1)
        # Those of Keras are running means: its clock adds them.
        if self._labels is results.argument_labels:
            self._past.note(error)
            if error.step is None and not error.optimizers and self._calls > 1:
                error.add_call(self._calls)
        error.attach(self._snapshot(args, kwargs, failed), time.monotonic() - start)
        raise error

    def _snapshot(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], failed: Failed
    ) -> Snapshot:
        """Keeps the call; its variables have the values from before it."""
        return Snapshot(
            self._function,
            args,
            kwargs,
            names=self._names(),
            labels=self._labels,
            is_xla=self._is_xla,
            drawn=failed.drawn,
            used=_compat.living_variables(self._concrete(args, kwargs)),
        )

    def _failed(self, result: Any, kept: Kept) -> Failed:
        look = self._looks[int(kept.look)]
        held = list(zip(look.kept, kept.before, strict=True))
        # They have not been written.
        held += [(slot, slot.read()) for slot in look.frozen]
        return Failed(
            result,
            results.nonfinite_outputs(result) + results.nonfinite_variables(look.kept),
            held,
            look.frozen,
            [] if kept.flags is None else instrumented.raised(look, kept.flags),
            look.graphs,
            dict(zip(look.drawn, kept.drawn, strict=True)),
            kept.absorbs is not None and bool(kept.absorbs),
        )

    def _with_flags(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], failed: Failed
    ) -> Failed:
        """Runs a call once more as it was compiled, with flags on its operations.

        A replay has the operations as they were written. TensorFlow's graph optimizer
        and XLA may have merged some of them, and flags on the results of these only
        keep the merge as it was: so those that can fail on finite inputs come first.

        Returns:
          The failure with these operations; unchanged if there are none.
        """
        for level in ("domain", "full"):
            check = CompiledCheck(
                self._function,
                options=self._options._replace(checks=level),
                names=self._names,
                labels=self._labels,
                signature=self._signature,
            )
            check._is_xla, check._holds = self._is_xla, False
            try:
                _, _, kept = check._watching()(*args, **kwargs)
            except (UnreadableError, TypeError, ValueError, tf.errors.OpError):
                return failed
            finally:
                variables.restore(failed.held)
            look = check._looks[int(kept.look)]
            if kept.flags is not None:
                flagged = instrumented.raised(look, kept.flags)
                if flagged:
                    return failed._replace(flagged=flagged, graphs=look.graphs)
        return failed

    def _handles(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> list[Any]:
        concrete = self._concrete(args, kwargs)
        return [each.handle for each in _compat.living_variables(concrete)]

    def _explained(
        self, args: Sequence[Any], kwargs: Mapping[str, Any], failed: Failed
    ) -> tuple[Sequence[NonFinite], str]:
        """Finds out why results are non-finite; restores the variables."""
        variables.restore(failed.held)
        kind = kind_of(failed)
        try:
            with training.announced(kind, self._handles(args, kwargs)):
                replayed = self._replayed(args, kwargs)
                reported, reason, origins = replayed.explain(failed)
        # The failure is reported even if it cannot be explained.
        except (UnreadableError, TypeError, ValueError, tf.errors.OpError) as error:
            hint = "" if failed.flagged else _HINT
            reported, reason, origins = failed.nonfinite, f"{error}.{hint}", []
            reported = reported or [NonFinite("", None)]
        finally:
            variables.restore(failed.held)
        found = measures.of_call(reported, origins, self._options, failed.held)
        return found, reason
