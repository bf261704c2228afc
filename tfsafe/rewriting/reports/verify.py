"""Compares both forms of a function with a float64 reference."""

import dataclasses
import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe._limits import LIMITS
from tfsafe.errors import NumericsError
from tfsafe.graph import UnreadableError, family, is_drawn, written_inputs
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.reports.float64_copy import widened
from tfsafe.rewriting.targets.function import collected, is_traced, stabilized

# The error of the stable form may be this many times that of the naive form.
_MARGIN = 8.0


def verified(
    function: Callable[..., Any], rules: Sequence[Rule], *, autograph: bool = True
) -> Callable[..., Any]:
    """Returns the stable form of a function, compared with the naive one at first.

    Args:
      function: A Python function or a `tf.function`.
      rules: The rules to apply.
      autograph: Whether AutoGraph converts a Python function.
    """
    plain = (
        function if is_traced(function) else tf.function(function, autograph=autograph)
    )
    stable = stabilized(plain, rules)
    is_due = True

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_due
        if is_due and tf.executing_eagerly():
            is_due = False
            remark = _verify(plain, rules, args, kwargs)
            if remark:
                warnings.warn(remark, RuntimeWarning, stacklevel=2)
        return stable(*args, **kwargs)

    call.stabilized = stable  # type: ignore[attr-defined]
    return call


@dataclasses.dataclass(frozen=True)
class _Wrong:
    """An output or variable in which the stable form is wrong.

    Attributes:
      label: The output or variable.
      count: How many elements are wrong.
      size: How many elements it has.
      index: Index of the first wrong one.
      values: Values of the naive form, the stable form and the reference there.
    """

    label: str
    count: int
    size: int
    index: tuple[int, ...]
    values: tuple[float, float, float]

    def __str__(self) -> str:
        naive, stable, reference = self.values
        place = f" at {self.index}" if self.index else ""
        return (
            f"{self.label}{place}: {naive:.9g} as written, {stable:.9g} stabilised, "
            f"{reference:.9g} as written in float64 ({self.count} of {self.size} "
            "values)"
        )


def _verify(
    plain: Any, rules: Sequence[Rule], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> str:
    """Compares both forms on some arguments; leaves the variables as they were.

    Returns:
      A warning for the user, or nothing.

    Raises:
      NumericsError: If the stable form is wrong.
    """
    name = getattr(plain, "__name__", "the function")
    concrete = tf.function(
        lambda: plain(*args, **kwargs), autograph=False
    ).get_concrete_function()
    reason = _obstacle(concrete.graph)
    if reason:
        return f"`{name}` was not verified: {reason}."
    forms = _Forms(concrete, plain, args, kwargs)
    naive = forms.outcome(lambda: plain(*args, **kwargs))
    try:
        reference = forms.outcome(forms.reference())
    except tf.errors.OpError as error:
        return f"`{name}` was not verified, for it does not run in float64: {error}"
    with collected() as found:
        wrong = _compared(naive, forms.stable(rules), reference)
    if not wrong:
        return ""
    fired = list(dict.fromkeys(each.rule for each in found))
    blamed = [
        rule
        for rule in fired
        if not _compared(
            naive, forms.stable([r for r in rules if r is not rule]), reference
        )
    ] or fired
    return _told(name, wrong, blamed)


def _obstacle(graph: tf.Graph) -> str:
    """Returns why a function cannot be run more than once, or nothing."""
    try:
        graphs = family(graph)
    except UnreadableError as error:
        return f"its operations cannot be read: {error}"
    for each in graphs:
        for op in each.get_operations():
            if is_drawn(op):
                return f"`{op.type}` returns something else each time"
            if "PyFunc" in op.type:
                return f"`{op.type}` may do anything"
    return ""


class _Forms:
    """The forms of one call, each run on the same state."""

    def __init__(
        self,
        concrete: Any,
        plain: Any,
        args: Sequence[Any],
        kwargs: Mapping[str, Any],
    ):
        self._concrete = concrete
        self._plain = plain
        self._args = args
        self._kwargs = kwargs
        captured = concrete.captured_inputs
        self._slots = [
            (captured[index], dtype)
            for index, dtype in written_inputs(concrete.graph).items()
        ]
        names = {id(each.handle): each.name for each in concrete.variables}
        self._names = [
            names.get(id(handle), "of the function") for handle, _ in self._slots
        ]

    def outcome(self, run: Callable[[], Any]) -> list[tuple[str, Any]]:
        """Returns what a form returns and writes, by label; undoes the writes."""
        before = self._read()
        try:
            results = [
                each
                for each in tf.nest.flatten(run(), expand_composites=True)
                if each is not None
            ]
            after = self._read()
        finally:
            for (handle, _), value in zip(self._slots, before, strict=True):
                tf.raw_ops.AssignVariableOp(resource=handle, value=value)
        labels = [f"output {i}" for i in range(len(results))]
        labels += [f"variable `{name}`" for name in self._names]
        return list(zip(labels, [*results, *after], strict=True))

    def _read(self) -> list[tf.Tensor]:
        return [
            tf.raw_ops.ReadVariableOp(resource=handle, dtype=dtype)
            for handle, dtype in self._slots
        ]

    def reference(self) -> Callable[[], Any]:
        """Returns the naive form in float64."""
        concrete = self._concrete
        return tf.function(
            lambda: widened(concrete.graph, concrete.captured_inputs), autograph=False
        ).get_concrete_function()

    def stable(self, rules: Sequence[Rule]) -> list[tuple[str, Any]]:
        """Returns the outcome of the stable form that some rules make."""
        function = stabilized(self._plain, rules)
        return self.outcome(lambda: function(*self._args, **self._kwargs))


def _compared(
    naive: Sequence[tuple[str, Any]],
    stable: Sequence[tuple[str, Any]],
    reference: Sequence[tuple[str, Any]],
) -> list[_Wrong]:
    wrong = []
    for (label, a), (_, b), (_, c) in zip(naive, stable, reference, strict=True):
        if tf.as_dtype(a.dtype).is_floating:
            wrong += _differences(label, a, b, c)
    return wrong


def _differences(label: str, naive: Any, stable: Any, reference: Any) -> list[_Wrong]:
    tolerance = LIMITS[naive.dtype.name].eps ** 0.5
    a, b, c = (
        np.asarray(tf.cast(each, tf.float64)) for each in (naive, stable, reference)
    )
    c = np.where(np.isfinite(c), c, a)
    finite = np.isfinite(a)
    size = np.abs(c[finite]).max(initial=0.0)
    with np.errstate(invalid="ignore"):
        # False where the stable form is NaN, which is wrong too.
        fits = np.abs(b - c) <= tolerance * size + _MARGIN * np.abs(a - c)
    misses = np.argwhere(finite & ~fits)
    if not len(misses):
        return []
    first = tuple(int(i) for i in misses[0])
    values = float(a[first]), float(b[first]), float(c[first])
    return [_Wrong(label, len(misses), a.size, first, values)]


def _told(name: str, wrong: Sequence[_Wrong], blamed: Sequence[Rule]) -> str:
    what = "; ".join(str(each) for each in wrong[:3])
    rules = ", ".join(repr(rule.name) for rule in blamed)
    text = (
        f"`{name}` and its stable form differ where both should agree. {what}. Behind "
        f"it: {rules}."
    )
    if all(rule.removes_bias for rule in blamed):
        return (
            f"{text} This is the bias of a guard, such as the `epsilon` in `log(p + "
            "epsilon)`, which the stable form does not have. Keep it with "
            f"`exclude=[{rules}]`."
        )
    raise NumericsError(
        f"{text} Leave out what is behind it, with `exclude=[{rules}]`, and please "
        "report the formula."
    )
