"""Decides which non-finite results pass: measures, on which no training depends."""

import re
import sys
import traceback
import weakref
from collections.abc import Collection, Sequence
from typing import Any

import keras
import numpy as np

from tfsafe._report.text import listed
from tfsafe.debugging import values
from tfsafe.debugging.checks import failures
from tfsafe.debugging.checks.options import Note, Options
from tfsafe.debugging.checks.tally import TALLY, Measured
from tfsafe.debugging.explain.training.layers import alive
from tfsafe.debugging.state.variables import Held, variables_in
from tfsafe.debugging.tracing.origins import Origin
from tfsafe.debugging.tracing.results import NonFinite
from tfsafe.graph import OpFact, op_types

# They pass an infinity on and make neither a loss nor a mean of it; "" is a value
# from outside.
_PASS = op_types(OpFact.ADDS_NO_NUMBER) | {
    *("", "AddV2", "Cast", "Const", "Max", "Maximum", "Min", "Minimum", "Neg"),
    *("Select", "SelectV2", "Sub", "TensorScatterUpdate", "TopKV2"),
}
_PSNR = re.compile(r"\bPSNR(_\d+)?\b")
_NAN = re.compile(r"\bnan\b", re.IGNORECASE)
_LOG = re.compile(r"output\['(.*)'\]")
# Handles of their variables, by `id`: an eager step with NaN in one is not the last.
_OF_METRICS: dict[int, weakref.ref[Any]] = {}


def of_call(
    reported: Sequence[NonFinite],
    origins: Sequence[Origin],
    options: Options,
    held: Sequence[Held],
) -> list[NonFinite]:
    """Returns what is `reportable` of the results of a call.

    Where they are noted, the logs of a Keras step and the state of metrics pass. Where
    `tfsafe run` names them in its last line, so do infinities of a call that trains
    nothing if they are what they should be: the PSNR of equal images, the minimum of
    nothing, and the program's own ones, written or given as an argument, as the
    distance of what no path joins; and so does NaN that it writes.

    Args:
      reported: As `reportable`.
      origins: As `reportable`.
      options: As `reportable`.
      held: The variables that the call may write.
    """
    found = failures.reportable(reported, origins, options)
    note = _noted_by(options)
    if note is None or not found:
        return found
    trains = any(slot.is_trainable for slot, _ in held)
    if note == TALLY.note and not trains and all(map(_is_right, found)):
        for origin in (o for each in found for o in each.origins):
            _note_meant(origin)
        return []
    is_measure = [
        (options.has_logs and _is_log(each)) or _is_of_metric(each.key)
        for each in found
    ]
    if all(is_measure):
        note(_measured(found))
        return []
    pairs = list(zip(found, is_measure, strict=True))
    causes = frozenset().union(*(each.origins for each, passes in pairs if not passes))
    # A measure with a cause of its own would be taken for that of the failure.
    return [each for each, passes in pairs if not passes or each.origins & causes]


def passes_write(result: NonFinite, options: Options) -> bool:
    """Returns whether a metric is being given a value eagerly, and notes that."""
    note = _noted_by(options)
    if note is None or not _is_in_metric():
        return False
    note(_measured([result]))
    return True


def _noted_by(options: Options) -> Note | None:
    """Returns what notes measures that are not finite; None where they are failures."""
    if options.strict:
        return None
    is_due = options.is_for_program and TALLY.notes_infinities
    return TALLY.note if is_due else options.note


def _is_of_metric(key: Any) -> bool:
    """Returns whether a result is the handle of a metric's variable."""
    if not _is_known(key):
        for metric in alive(keras.Metric):
            # One whose `__init__` was refused has none.
            for variable in variables_in(list(getattr(metric, "variables", ()))):
                handle = variable.handle
                _OF_METRICS[id(handle)] = weakref.ref(handle)
    return _is_known(key)


def _is_known(key: Any) -> bool:
    known = _OF_METRICS.get(id(key))
    return known is not None and known() is key


def _is_in_metric() -> bool:
    """Returns whether a method of a metric is being called."""
    for frame, _ in traceback.walk_stack(sys._getframe()):
        if "self" in frame.f_code.co_varnames[:1]:
            kind = type(frame.f_locals.get("self"))
            if issubclass(kind, keras.Metric):
                return True
    return False


def _is_log(result: NonFinite) -> bool:
    """Returns whether a result is of the logs of a step, and no loss."""
    return not result.is_loss and _LOG.fullmatch(result.label) is not None


def _measured(results: Sequence[NonFinite]) -> Measured:
    """Describes measures that are not finite."""
    logs = [f"`{m[1]}`" for each in results if (m := _LOG.fullmatch(each.label))]
    names = dict.fromkeys(logs or [each.label for each in results])
    origins = [o for each in results for o in each.origins if o.step is not None]
    first: Any = min(origins, key=lambda each: each.order, default=None)
    has_nan = any(values.has_nan(each.value) for each in results)
    return Measured(
        "NaN" if has_nan else "an infinity",
        listed(names),
        None if first is None else (first.step.type, first.place.site),
    )


def _note_meant(origin: Origin) -> None:
    if _is_argument(origin):
        TALLY.given = TALLY.given or (origin.holder, origin.place.site)
    if origin.step is None:
        return
    place = origin.step.type, origin.place.site
    if _is_written_nan(origin):
        TALLY.written = TALLY.written or place
    else:
        TALLY.infinity = TALLY.infinity or place


def _is_right(result: NonFinite) -> bool:
    """Returns whether a result, no loss, is non-finite as it should be."""
    if not values.is_float(result.value) or result.is_loss or not result.origins:
        return False
    is_meant = _is_nan_meant if values.has_nan(result.value) else _is_meant
    return all(is_meant(each, result) for each in result.origins)


def _is_nan_meant(origin: Origin, result: NonFinite) -> bool:
    return _is_written_nan(origin) and _is_passed(origin, result)


def _is_written_nan(origin: Origin) -> bool:
    """Returns whether the program writes `nan`; a table of data has numbers, too."""
    is_constant = origin.step is not None and origin.step.type == "Const"
    return is_constant and bool(np.isnan(values.array(origin.value)).all())


def is_written_out(origins: Collection[Origin]) -> bool:
    """Returns whether values are NaN throughout, and their lines write `nan`.

    So a variable begins that has no value yet. What uses it is checked.
    """
    return all(
        each.step is None
        and each.place.site is not None
        and _NAN.search(each.place.site.source) is not None
        and bool(np.isnan(values.array(each.value)).all())
        for each in origins
    )


def _is_argument(origin: Origin) -> bool:
    return origin.step is None and origin.holder.startswith("argument ")


def _is_passed(origin: Origin, result: NonFinite) -> bool:
    return all(each.type in _PASS for each in result.path(origin))


def _is_meant(origin: Origin, result: NonFinite) -> bool:
    step = origin.step
    if _is_argument(origin):
        return _is_passed(origin, result)
    if step is None:
        # A metric adds to what passed before.
        is_held = origin.holder.startswith(("variable", "a variable"))
        return is_held and TALLY.infinity is not None
    if _PSNR.search(origin.place.scope):
        return True
    is_of_nothing = (
        step.type in {"Max", "Min"} and not values.array(step.inputs[0]).size
    )
    return _is_passed(origin, result) and (origin.is_intended or is_of_nothing)
