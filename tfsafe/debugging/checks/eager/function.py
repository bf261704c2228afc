"""Checks a Python function that runs eagerly."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import values
from tfsafe.debugging.checks import measures, tally
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.replayed_call import chosen, followed
from tfsafe.debugging.explain import findings, message
from tfsafe.debugging.explain.outside import FROM_NUMPY
from tfsafe.debugging.state import variables as _state
from tfsafe.debugging.tracing import results
from tfsafe.debugging.tracing.eager_recorder import Recorder
from tfsafe.debugging.tracing.provenance import Propagation
from tfsafe.debugging.tracing.results import NonFinite

_OUTSIDE = f"no operation of the call gave non-finite values; {FROM_NUMPY}"


class EagerCheck:
    """Calls a Python function and raises if its results are not finite.

    Every operation is checked as it runs, so nothing is run twice.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        options: Options,
        variables: Callable[[], Sequence[tf.Variable]] | None = None,
        names: _state.NamesOf = dict,
        labels: results.Labels = results.argument_labels,
    ):
        self._function = function
        self._options = options
        self._variables = variables
        self._names = names
        self._labels = labels

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function."""
        with tally.entered():
            return self._checked(args, kwargs)

    def _checked(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        before = self._read([*args, *kwargs.values()])
        arguments = list(self._labels(self._function, args, kwargs))
        propagation = Propagation(_namer(arguments, list(before.values())))
        propagation.rows = results.rows_of(arguments, arguments)
        recorder = Recorder(propagation)
        with _compat.eager_callback(recorder):
            result = self._function(*args, **kwargs)
        tally.TALLY.calls += 1
        nonfinite = results.nonfinite_outputs(result)
        if not nonfinite and not propagation.all:
            return result
        names = self._names()
        for key, (slot, value) in recorder.before.items():
            name = names.get(key) or recorder.name_of(slot.handle)
            before.setdefault(key, (slot._replace(name=name), value))
        written = [before[key] for key in recorder.written if key in before]
        nonfinite += results.nonfinite_variables(slot for slot, _ in written)
        reported = self._reported(result, nonfinite, propagation, written)
        if not reported:
            return result
        _state.restore(written)
        error = message.numerics_error(
            reported,
            held=written,
            reason=_OUTSIDE,
            inputs=arguments,
            handles=[slot.handle for slot, _ in before.values()],
        )
        raise error

    def _reported(
        self,
        result: Any,
        nonfinite: Sequence[NonFinite],
        propagation: Propagation,
        written: Sequence[_state.Held],
    ) -> list[NonFinite]:
        found = [followed(each, propagation, each.key) for each in nonfinite]
        if propagation.all and found and not any(each.origins for each in found):
            # A number that left TensorFlow, by `.numpy()` or `float()`, has lost its
            # origin; what went wrong first is then the best guess.
            origins = frozenset(findings.ordered(propagation.all)[:1])
            found = [each._replace(origins=origins) for each in found]
        found += chosen(result, propagation)
        if self._options.level != "watch" and propagation.absorbed:
            found.append(
                NonFinite("", None, origins=frozenset(propagation.absorbed[:1]))
            )
        return measures.of_call(found, propagation.all, self._options, written)

    def _read(self, arguments: Sequence[Any]) -> dict[int, _state.Held]:
        names = self._names()
        found = (
            _state.reachable(self._function, arguments)
            if self._variables is None
            else self._variables()
        )
        slots = [_state.slot_of(variable, names) for variable in found]
        return {id(slot.handle): (slot, slot.read()) for slot in slots}


def _namer(
    arguments: Sequence[tuple[str, Any]], held: Sequence[_state.Held]
) -> Callable[[Any], str]:
    """Builds the function that names values from outside."""
    named = [(f"argument `{path}`", each, each) for path, each in arguments]
    named += [(slot.label, slot.handle, value) for slot, value in held]
    labels = {id(key): label for label, key, _ in named}

    def name(value: Any) -> str:
        if id(value) in labels:
            return labels[id(value)]
        # A NumPy array becomes a tensor inside the function, and a variable is read
        # inside an operation: they are known by what they hold.
        for label, _, each in named:
            if isinstance(each, np.ndarray | tf.Tensor) and values.is_same(each, value):
                return label
        return ""

    return name
