"""Compares both forms of a function with a float64 reference."""

import functools
import warnings
from collections.abc import Callable, Mapping, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.graph import UnreadableError, family, is_drawn, locate
from tfsafe.rewriting.engine.function import is_traced, stabilized
from tfsafe.rewriting.engine.planner import Rewrite
from tfsafe.rewriting.engine.rule import Rule
from tfsafe.rewriting.reports.forms import Forms, Wrong

# The floating arguments are verified as they are, and times these.
_SCALES = (10.0, 0.1)


def verified(
    function: Callable[..., Any], rules: Sequence[Rule], *, autograph: bool = True
) -> Callable[..., Any]:
    """Returns the stable form of a function, compared with the naive one at first.

    A rewrite that loses digits is reported in a warning and not made.
    """
    plain = (
        function if is_traced(function) else tf.function(function, autograph=autograph)
    )
    is_due = True

    @functools.wraps(function, updated=())
    def call(*args: Any, **kwargs: Any) -> Any:
        nonlocal is_due
        if is_due and tf.executing_eagerly():
            is_due = False
            found = _verify(plain, rules, args, kwargs)
            for text in found.texts:
                warnings.warn(text, RuntimeWarning, stacklevel=2)
            if found.skipped:
                call.stabilized = stabilized(  # type: ignore[attr-defined]
                    plain, rules, skipped=found.skipped
                )
        return call.stabilized(*args, **kwargs)  # type: ignore[attr-defined]

    call.stabilized = stabilized(plain, rules)  # type: ignore[attr-defined]
    return call


class _Found(NamedTuple):
    """What a comparison found.

    Attributes:
      texts: The warnings.
      skipped: The rewrites not to make; see `Planner`.
    """

    texts: list[str]
    skipped: set[tuple[str, str]]


def _verify(
    plain: Any, rules: Sequence[Rule], args: Sequence[Any], kwargs: Mapping[str, Any]
) -> _Found:
    """Compares both forms on some arguments; leaves the variables as they were."""
    name = getattr(plain, "__name__", "the function")
    forms = Forms(plain, args, kwargs)
    reason = _obstacle(forms.graph)
    if reason:
        return _Found([f"`{name}` was not verified: {reason}."], set())
    try:
        forms.prepare()
    except tf.errors.OpError as error:
        text = f"`{name}` was not verified, for it does not run in float64: {error}"
        return _Found([text], set())
    texts, skipped = _compare(name, forms, rules, set())
    for scale in _SCALES:
        forms = Forms(plain, args, kwargs, scale)
        try:
            forms.prepare()
            more, skipped = _compare(name, forms, rules, skipped)
        except tf.errors.OpError:
            # The function may not be made for such arguments.
            continue
        texts += [f"With its arguments times {scale}: {each}" for each in more]
    return _Found(texts, skipped)


def _compare(
    name: str, forms: Forms, rules: Sequence[Rule], skipped: set[tuple[str, str]]
) -> tuple[list[str], set[tuple[str, str]]]:
    """Finds the rewrites that lose digits, one by one.

    Returns:
      The warnings, and the rewrites not to make, with those that were known before.
    """
    texts: list[str] = []
    # Those whose bias is removed on purpose are looked through, but made.
    apart = set(skipped)
    wrong, rewrites = forms.wrong(rules, apart)
    while wrong and rewrites:
        left = [
            (_size(forms.wrong(rules, {*apart, each.key})[0]), index)
            for index, each in enumerate(rewrites)
        ]
        size, index = min(left)
        blamed = [rewrites[index]] if size < _size(wrong) else rewrites
        texts.append(_text(name, wrong, blamed))
        keys = {each.key for each in blamed}
        if not all(each.rule.removes_bias for each in blamed):
            skipped = skipped | keys
        apart |= keys
        wrong, rewrites = forms.wrong(rules, apart)
    return texts, skipped


def _size(wrong: Sequence[Wrong]) -> int:
    return sum(each.count for each in wrong)


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


def _text(name: str, wrong: Sequence[Wrong], blamed: Sequence[Rewrite]) -> str:
    what = "; ".join(str(each) for each in wrong[:3])
    rules = ", ".join(dict.fromkeys(repr(each.rule.name) for each in blamed))
    sites = [locate(each.op).site for each in blamed]
    places = dict.fromkeys(f"{each.path}:{each.line}" for each in sites if each)
    text = (
        f"`{name}` and its stable form differ where both should agree. {what}. Behind "
        f"it: {rules}{' at ' if places else ''}{', '.join(places)}."
    )
    if all(each.rule.removes_bias for each in blamed):
        return (
            f"{text} This is the bias of a guard, such as the `epsilon` in `log(p + "
            "epsilon)`, which the stable form does not have. Keep it with "
            f"`exclude=[{rules}]`."
        )
    return f"{text} This formula runs as written. Please report it."
