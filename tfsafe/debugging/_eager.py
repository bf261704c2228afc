"""Checking a Python function that runs eagerly."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe.debugging import _findings, _results, _state, _values
from tfsafe.debugging._recorder import Recorder
from tfsafe.debugging._trail import Trail
from tfsafe.errors import NumericsError


class EagerCheck:
    """Calls a Python function and raises if its results are not finite.

    Every operation is looked at as it runs, so nothing is run twice.

    Args:
      function: The function.
      strict: Whether a non-finite value on the way is an error too.
      variables: Finds the variables that the call may write.
      names: Better names for variables, by `id` of the handle.
      labels: Names the arguments.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        strict: bool,
        variables: Callable[[], Sequence[tf.Variable]] | None = None,
        names: _state.NamesOf = dict,
        labels: _results.Labels = _results.argument_labels,
    ):
        self._function = function
        self._strict = strict
        self._variables = variables
        self._names = names
        self._labels = labels

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Calls the function.

        Returns:
          What the function returns.

        Raises:
          NumericsError: If a result is not finite.
        """
        before = self._read([*args, *kwargs.values()])
        arguments = list(self._labels(self._function, args, kwargs))
        trail = Trail(_namer(arguments, list(before.values())))
        recorder = Recorder(trail)
        with _compat.eager_callback(recorder):
            result = self._function(*args, **kwargs)
        bad = _results.bad_outputs(result)
        if not bad and not trail.all:
            return result
        names = self._names()
        for key, (slot, value) in recorder.before.items():
            before.setdefault(key, (slot._replace(name=names.get(key, "")), value))
        written = [before[key] for key in recorder.written if key in before]
        bad += _results.bad_variables(slot for slot, _ in written)
        bad = [each._replace(origins=trail.origins(each.key)) for each in bad]
        if self._strict:
            bad = [_results.Bad("", None, origins=frozenset(trail.all[:1]))]
        if not bad:
            return result
        _state.put_back(written)
        raise self._explained(bad, trail, arguments, len(written))

    @staticmethod
    def _explained(
        bad: Sequence[_results.Bad],
        trail: Trail,
        arguments: Sequence[tuple[str, Any]],
        restored: int,
    ) -> NumericsError:
        if trail.all and not any(each.origins for each in bad):
            # A number that left TensorFlow, by `.numpy()` or `float()`, has lost its
            # origin; what went wrong first is then the best guess.
            origins = frozenset(_findings.ordered(trail.all)[:1])
            bad = [each._replace(origins=origins) for each in bad]
        return _results.error(
            bad,
            batch=_results.batch_size(arguments),
            restored=restored,
            reason="no operation of the call gave non-finite values.",
        )

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
            if isinstance(each, np.ndarray | tf.Tensor) and _values.is_same(
                each, value
            ):
                return label
        return ""

    return name
