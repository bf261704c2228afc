"""Checks the eager operations of one thread, while the checks are switched on."""

import contextlib
import sys
import weakref
from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _compat
from tfsafe._faults import contained
from tfsafe._report.caller import (
    begins_at_log_of_zero,
    is_file_of_saving,
    is_on_stack,
)
from tfsafe.debugging import values
from tfsafe.debugging.checks import failures, measures, tally
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.replayed_call import followed
from tfsafe.debugging.explain import message
from tfsafe.debugging.state import variables as _state
from tfsafe.debugging.state.variables import Held, Slot
from tfsafe.debugging.tracing import earlier
from tfsafe.debugging.tracing.eager_recorder import Recorder
from tfsafe.debugging.tracing.provenance import WRITES, Propagation, is_container
from tfsafe.debugging.tracing.results import NonFinite
from tfsafe.errors import NumericsError, Site

# So many values of a block with NaN are remembered that no operation uses, and so many
# that are infinite.
_UNUSED = 20
_NO_NAME = "a value that no operation uses"
# They make an index of numbers, and one of NaN too.
_CHOICES = {"ArgMax", "ArgMin", "Multinomial", "StatelessMultinomial"}
_REASON = "no operation that was seen gave non-finite values."


class Session(Recorder):
    """Follows what one thread runs eagerly, and raises at a non-finite result.

    The results of eager code are a loss of NaN, the gradients that a tape returns and
    the values that variables are given; under `strict`, those of every operation.

    Args:
      active: Gives the options; None once the checks are switched off.

    Attributes:
      is_open: Whether it receives operations.
    """

    def __init__(self, active: Callable[[], Options | None]):
        super().__init__(Propagation(lambda _: "", keeps=False))
        self._active = active
        # What variables held when they were last read, since they were last written.
        self._held: dict[int, tuple[Any, tf.Tensor]] = {}
        self._scaled: weakref.WeakValueDictionary[int, tf.Tensor] = (
            weakref.WeakValueDictionary()
        )
        self.is_open = True
        self._tapes = 0
        # Non-finite values that no operation has used so far, where they are wanted.
        self._unused: dict[int, tf.Tensor] | None = None
        self._named: Callable[[Any], str] = lambda _: ""
        self._passes_infinities = False
        # What variables held before the update that is being made.
        self._whole: list[Held] = []
        earlier.remember(self.propagation)
        _compat.add_eager_callback(self)

    def close(self) -> None:
        """Ends it, in its own thread."""
        if self.is_open:
            self.is_open = False
            earlier.forget(self.propagation)
            _compat.remove_eager_callback(self)

    def __call__(
        self,
        op_type: str | bytes,
        inputs: Sequence[tf.Tensor],
        attrs: Any,
        outputs: Sequence[tf.Tensor],
        op_name: str | None = None,
        graph: tf.Graph | None = None,
    ) -> None:
        """Follows one operation, and checks it."""
        with contained("the check of an operation"):
            self._follow(op_type, inputs, attrs, outputs, op_name, graph)

    def _follow(
        self,
        op_type: str | bytes,
        inputs: Sequence[tf.Tensor],
        attrs: Any,
        outputs: Sequence[tf.Tensor],
        op_name: str | None,
        graph: tf.Graph | None,
    ) -> None:
        options = self._active()
        if options is None:
            # Switched off by another thread.
            self.close()
            return
        if graph is not None or self.is_busy:
            return
        kind = tf.compat.as_str(op_type)
        if tally.is_inside():
            self._note_call(kind)
            return
        known = self._last_origin()
        super().__call__(op_type, inputs, attrs, outputs, op_name, graph)
        self._note_unused(kind, inputs, outputs)
        self.is_busy = True
        try:
            with tally.entered():
                if kind.startswith(WRITES):
                    self._check_write(inputs[0], options)
                # A dataset may repair what it holds: its elements count.
                is_held = "Dataset" in kind and all(map(is_container, outputs))
                is_new = options.strict and self._last_origin() > known
                if is_new and not is_held and not is_on_stack(begins_at_log_of_zero):
                    self._raise_if_due([], [], options, known)
        finally:
            self.is_busy = False

    def _note_call(self, kind: str) -> None:
        """Remembers a checked function, which a tape may differentiate later."""
        if not hasattr(tf.raw_ops, kind):
            called = _compat.called_function(sys._getframe(2))
            if called is not None:
                self._graphs[id(called[0])] = called[0]

    def _follow_state(
        self, kind: str, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]
    ) -> None:
        if kind == "ReadVariableOp":
            drop, key = self._held.pop, id(inputs[0])
            end = weakref.ref(inputs[0], lambda _: drop(key, None))
            self._held[key] = end, outputs[0]

    def _check_write(self, handle: tf.Tensor, options: Options) -> None:
        _, value = self._held.pop(id(handle), (None, None))
        origins = self.propagation.origins(handle)
        if not origins or all(each.is_intended for each in origins):
            return
        # Keras would take the finding for a file that it cannot read. What a file holds
        # is found where it is used.
        is_given = all(each.step is None for each in origins)
        if is_given and is_on_stack(is_file_of_saving):
            self.propagation.unmark(handle)
            return
        new = next(iter(origins)).value
        slot = Slot(handle, new.dtype, self.name_of(handle))
        held = self._whole or ([] if value is None else [(slot, value)])
        found = NonFinite(slot.label, new, handle, origins)
        passes = self._passes_infinities and not (options.strict or self._whole)
        if passes and measures.is_written_out(origins):
            return
        # Without a step they are what the program is about, or begins with.
        passes = passes and not tally.TALLY.steps
        if passes and not _has_nan(self.propagation.value(handle)):
            return
        if not measures.passes_write(found, options):
            self._raise_if_due([found], held, options)

    def _note_unused(
        self, kind: str, inputs: Sequence[tf.Tensor], outputs: Sequence[tf.Tensor]
    ) -> None:
        """Remembers the first values that nothing uses; gradients are results later."""
        if self._unused is None or self._tapes:
            return
        # To print a value is not to use it.
        if outputs and all(each.dtype == tf.string for each in outputs):
            return
        for each in inputs:
            used = self._unused.pop(id(each), None)
            if used is not None and kind in _CHOICES and _has_nan(used):
                self._unused[id(each)] = used
        for each in filter(self.propagation.origins, outputs):
            is_nan = _has_nan(each)
            alike = [x for x in self._unused.values() if _has_nan(x) == is_nan]
            if len(alike) < _UNUSED:
                self._unused[id(each)] = each

    @contextlib.contextmanager
    def collecting(
        self, name: Callable[[Any], str], *, passes_infinities: bool = False
    ) -> Iterator[None]:
        """Remembers the non-finite values of a block that no operation uses.

        Args:
          name: Returns the name of a tensor of the block, or an empty string.
          passes_infinities: Whether only `strict` reports infinite results.
        """

        # An infinity without a name may be meant, such as that of a mask.
        def named(value: Any) -> str:
            is_known = values.is_clean(value) or values.has_nan(value)
            return name(value) if is_known else ""

        self._unused, self._named = {}, name
        self._passes_infinities = passes_infinities
        self.propagation.names.append(named)
        try:
            yield
        finally:
            self.propagation.names.remove(named)
            self._unused, self._passes_infinities = None, False

    def check_results(self, named: Iterable[tuple[str, Any]] = ()) -> None:
        """Raises for values with names, and for those of `collecting`.

        Values count that operations made, except infinities that the program wrote and,
        where infinite results pass, all without NaN.
        """
        options = self._active()
        if options is None:
            return
        passes = self._passes_infinities and not options.strict
        with tally.entered():
            found = self._results()
            found |= {id(each): (label, each) for label, each in named}
            nonfinite = [
                NonFinite(label, value, value)
                for label, value in found.values()
                if any(not o.is_intended for o in self.propagation.origins(value))
                and not (passes and not _has_nan(value))
            ]
            if nonfinite:
                self._raise_if_due(nonfinite, [], options)

    def first_result(self, *, is_nan: bool) -> tuple[str, Site | None] | None:
        """Returns where the first non-finite result began: the operation, its line.

        Args:
          is_nan: Whether to look for a result of `collecting` with NaN, or for one
            without, or such a variable.

        Returns:
          None without one that is alive.
        """
        options = self._active()
        if options is None:
            return None
        with tally.entered():
            found = [each for _, each in self._results().values()]
            found = [each for each in found if _has_nan(each) == is_nan]
            held = [] if is_nan else self.handles()
            origins = {
                origin
                for each in [*found, *held]
                for origin in self.propagation.origins(each)
                if origin.step is not None
                and not origin.is_intended
                and not failures.is_excluded(origin, options)
            }
        first = min(origins, key=lambda each: each.order, default=None)
        if first is None or first.step is None:
            return None
        return first.step.type, first.place.site

    def _results(self) -> dict[int, tuple[str, tf.Tensor]]:
        return {
            id(each): (self._named(each) or _NO_NAME, each)
            for each in (self._unused or {}).values()
        }

    def scaled(self, loss: Any) -> None:
        """Notes a loss that was scaled: its gradients overflow by design."""
        if isinstance(loss, tf.Tensor):
            self._scaled[id(loss)] = loss

    @contextlib.contextmanager
    def differentiating(self) -> Iterator[None]:
        """Marks that a tape is at work; the gradients within are not results yet."""
        self._tapes += 1
        try:
            yield
        finally:
            self._tapes -= 1

    @contextlib.contextmanager
    def updating(self, variables: Iterable[Any]) -> Iterator[None]:
        """Marks an update of variables, which is made as a whole or not at all."""
        if self._whole:
            yield
            return
        with tally.entered(), contained("reading variables before an update"):
            slots = [_state.slot_of(each, {}) for each in variables]
            self._whole = [(slot, slot.read()) for slot in slots]
        try:
            yield
        finally:
            self._whole = []

    def check_gradients(self, target: Any, gradients: Any) -> None:
        """Raises if gradients that a tape returned are not finite, or their loss."""
        options = self._active()
        scaled = any(id(each) in self._scaled for each in tf.nest.flatten(target))
        if options is None or scaled or self._tapes:
            return
        with tally.entered():
            found = [
                NonFinite(label, value, value)
                for label, value in values.leaves(gradients, "gradient")
                if not values.is_clean(value)
            ]
            losses = [
                each for each in tf.nest.flatten(target) if not values.is_clean(each)
            ]
            # The elements of a vector may be masked later.
            is_lost = any(
                each.shape.rank == 0 and values.has_nan(each) for each in losses
            )
            if found or is_lost:
                # A non-finite loss has the first cause.
                of_loss = [NonFinite("the loss", each, each) for each in losses]
                self._raise_if_due([*of_loss, *found], [], options)

    def _last_origin(self) -> int:
        return self.propagation.all[-1].order if self.propagation.all else 0

    def _raise_if_due(
        self,
        nonfinite: Sequence[NonFinite],
        held: Sequence[Held],
        options: Options,
        known: int | None = None,
    ) -> None:
        """Raises for results; under `strict`, for what began after origin `known`."""
        found = [followed(each, self.propagation, each.key) for each in nonfinite]
        origins = self.propagation.all
        if known is None:
            origins = origins[-1:]
        else:
            origins = [each for each in origins if each.order > known]
        reported = failures.reportable(found, origins, options)
        if reported:
            _state.restore(held)
            for slot, _ in held:
                self.propagation.unmark(slot.handle)
            raise self._error(reported, held)

    def _error(
        self, reported: Sequence[NonFinite], held: Sequence[Held]
    ) -> NumericsError:
        tally.TALLY.failed += 1
        return message.numerics_error(
            reported,
            held=held,
            reason=_REASON,
            handles=self.handles(),
            steps=max(tally.TALLY.steps, 1),
        )


def _has_nan(value: Any) -> bool:
    return values.is_float(value) and values.has_nan(value)
