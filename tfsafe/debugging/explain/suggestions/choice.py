"""Suggests what to write instead: one row a fix."""

import re
from collections.abc import Callable, Sequence
from typing import NamedTuple

from tfsafe._report import caller
from tfsafe.debugging.explain.suggestions import source_names, syntax
from tfsafe.debugging.explain.suggestions.fix import Fix
from tfsafe.debugging.explain.suggestions.fixes import FIXES
from tfsafe.debugging.explain.training.layers import swap_of
from tfsafe.debugging.tracing.lost_digits import WRAPPED
from tfsafe.debugging.tracing.provenance import (
    PRODUCT_WITH_BOTH,
    PRODUCT_WITH_ZERO,
    QUOTIENT_OF_BOTH,
)
from tfsafe.debugging.tracing.step import OnLine
from tfsafe.graph import MATRIX_PRODUCTS, OpFact, op_types


class Failure(NamedTuple):
    """The facts by which a fix is chosen.

    Attributes:
      op: Type of the operation, the forward one for a gradient.
      fault: Kind of the fault, see `causes.Rule`.
      is_gradient: Whether it is the gradient of `op` that failed.
      dtype: Name of the dtype of the non-finite output.
      producers: Types of the operations that made the inputs.
      source: The user's line, whose names go into the suggested code.
      scope: Name scope of the operation; may be empty.
      met_next: Operations that the values met, see `Propagation.met_next`.
      layer: Class of the Keras layer around the operation, if it is in one.
      kind: What the values became: `"NaN"`, `"+Inf"`.
      place: File and number of the user's line.
      zero: How the number behind it was made, `UNDERFLOW`, `CANCELLATION`,
        `RECTIFIED`, `DRAWN` or `WRAPPED`; empty where the program wrote it.
      zero_of: Type of the operation that made that zero.
      is_stable: Whether its function runs in its stable form already.
      is_ragged: Whether the operation runs on the values of ragged rows.
      is_library: Whether Keras makes the operation, not the line of the user.
      above_one: Whether an argument is above 1.
      on_line: Finds which of those on its line it is.
    """

    op: str
    fault: str
    is_gradient: bool
    dtype: str
    producers: list[str]
    source: str
    scope: str = ""
    met_next: Sequence[tuple[str, ...]] = ()
    layer: type | None = None
    kind: str = ""
    place: tuple[str, int] = ("", 0)
    zero: str = ""
    zero_of: str = ""
    is_stable: bool = False
    is_ragged: bool = False
    is_library: bool = False
    above_one: bool = False
    on_line: Callable[[], OnLine] = OnLine


class Formula(NamedTuple):
    """A function of a library that is made of the operations that fail.

    Attributes:
      name: What it is called.
      ops: The operations in it that may fail.
      code: The function to call instead, with the same arguments.
      words: What that does.
    """

    name: str
    ops: frozenset[str]
    code: str
    words: str


REWRITES = "Or tfsafe.stabilize(f) rewrites it in a function or model f."
_RAGGED = (
    "tfsafe.ops takes dense tensors: tf.ragged.map_flat_values(f, rows) applies f to "
    "the values of ragged ones."
)
_OF_LAYER = (
    "for instance with dtype='float32' on its layer and on the layers in it, or scale "
    "its inputs down."
)
_OF_FUNCTION = "from tf.cast(x, tf.float32) on, or scale its inputs down."
_HALF_GRADIENT = (
    "if the loss is multiplied by a scale, lower it, as "
    "keras.optimizers.LossScaleOptimizer(optimizer) does by itself when a gradient "
    "overflows. Otherwise "
)
SCALE = (
    "scale the inputs down, lower the learning rate or clip the gradients; "
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights."
)
_OF_INTEGERS = (
    "integers that overflow become others, negative ones too: convert the arguments "
    "of that operation, tf.cast(x, tf.float32), not its result; or to tf.int64."
)
_SKIP = (
    "tfsafe.optimizers.SafeOptimizer(optimizer) keeps one such step from reaching the "
    "weights, until the cause is found."
)


_ROOTS = frozenset({"Mean", "Mul", "Rsqrt", "Sqrt", "Square", "Sum"})
# Where one of them is called on the user's line, it is what the user wants to replace.
FORMULAS = [
    Formula(
        "reduce_std",
        _ROOTS,
        "tfsafe.ops.std",
        "has the same values, and gradient 0 where all elements are equal.",
    ),
    Formula(
        "std",
        _ROOTS,
        "tfsafe.ops.std",
        "has the same values, and gradient 0 where all elements are equal.",
    ),
    Formula(
        "norm",
        _ROOTS,
        "tfsafe.ops.norm",
        "has the same values, gradient 0 at 0, and squares that do not overflow.",
    ),
    Formula(
        "l2_normalize",
        _ROOTS,
        "tfsafe.ops.l2_normalize",
        "returns 0, with gradient 0, where the norm is 0.",
    ),
    Formula(
        "linalg.normalize",
        _ROOTS | {"RealDiv"},
        "tfsafe.ops.normalize",
        "returns 0, with gradient 0, where the norm is 0.",
    ),
]


# The operations that two things met are written as.
_OUTER = {QUOTIENT_OF_BOTH: "RealDiv", PRODUCT_WITH_ZERO: "Mul"}
_LINEAR = op_types(OpFact.MOVES) | op_types(OpFact.PICKS) | MATRIX_PRODUCTS
_LINEAR |= {"AddV2", "Mean", "Mul", "RealDiv", "Sub", "Sum", QUOTIENT_OF_BOTH}
_PRODUCTS = {(PRODUCT_WITH_ZERO,), (PRODUCT_WITH_BOTH,)}
_SURVEY = 'tfsafe.data.check_finite({}, policy="report")'
_KERAS = re.compile(r"(.+\.)?(fit|evaluate|predict|(train|test|predict)_on_batch)")


def survey(holder: str, call: caller.Call | None) -> str:
    """Returns the check of the data that the user passed; empty if it is not known.

    Args:
      holder: What has non-finite values: ``"argument `x`"``, or ``"`x`"`` of a program.
      call: The user's call of the checked function or of `fit`.
    """
    if named := re.fullmatch(r"`(\w+)`", holder):
        return _SURVEY.format(named[1])
    if call is None or not holder.startswith("argument "):
        return ""
    if _KERAS.fullmatch(call.function):
        given = dict(zip(("x", "y"), call.arguments, strict=False)) | call.keywords
        names = ["x", "y", *(["sample_weight"] if "sample_weight" in holder else [])]
        names = [name for name in names if name in given]
        passed = [caller.whole(given[name]) for name in names]
    else:
        names = [re.split(r"\W", holder.partition("`")[2])[0]]
        if call.loop:
            names, passed = ["data"], [call.loop]
        elif len(call.arguments) + len(call.keywords) == 1:
            passed = [*call.arguments, *call.keywords.values()]
        else:
            passed = [call.keywords[name] for name in names if name in call.keywords]
    data = caller.shown(_tuple_of(passed))
    if not data:
        return ""
    first = ""
    if any(map(caller.has_call, passed)):
        # It may read a file, or be another data set the next time.
        first = f"{', '.join(names)} = {', '.join(passed)}\n"
        data = _tuple_of(names)
    return f"{first}{_SURVEY.format(data)}"


def _tuple_of(expressions: Sequence[str]) -> str:
    joined = ", ".join(expressions)
    return f"({joined})" if len(expressions) > 1 else joined


class Suggestion(NamedTuple):
    """What to write.

    Attributes:
      code: The code; empty where there is none.
      words: What it does, or what to change.
      replaces: The user's expression that it takes the place of; empty where that is
        not one expression.
      replaced_line: Number of the line of this expression; 0 for the user's line.
    """

    code: str
    words: str
    replaces: str = ""
    replaced_line: int = 0


def fix_of(failure: Failure) -> Suggestion:
    """Returns the code to write, and what it does."""
    found = _fix_of(failure)
    if not failure.is_ragged or "tfsafe.ops." not in f"{found.code} {found.words}":
        return found
    # Of arguments of other shapes only the operators of TensorFlow make ragged ones.
    code = source_names.of_ragged(found.code)
    if code:
        return found._replace(code=code)
    words = f"{found.code} {found.words} {_RAGGED}".strip()
    return found._replace(code="", words=words)


def _fix_of(failure: Failure) -> Suggestion:
    if failure.zero == WRAPPED:
        return Suggestion("", _OF_INTEGERS)
    for formula in FORMULAS:
        if failure.op in formula.ops and _is_of(failure, formula.name):
            name, call = syntax.call(formula.name, failure.source)
            words = _or_rewritten(formula.words, failure)
            if not call:
                return Suggestion("", f"{formula.code} {words}")
            return Suggestion(f"{formula.code}({call})", words, f"{name}({call})")
    # An overflow is one in the safe class too.
    is_domain = failure.fault in {"domain", "negative", "zero", "zero first"}
    if is_domain and failure.is_library:
        code, words = swap_of(failure.layer, failure.scope)
        if words:
            return Suggestion(code, words)
    for each in FIXES:
        if _fits(each, failure):
            row = each.in_dtype(failure.dtype)
            seen = source_names.Seen(failure.source, failure.place)
            if not failure.is_gradient:
                seen = seen._replace(
                    producers=failure.producers, on_line=failure.on_line
                )
            named = seen._replace(functions=syntax.MADE_OF)
            words = source_names.filled(row.op, row.words, named)
            words = words or source_names.in_words(row.op, row.words)
            words = _or_rewritten(words, failure) if row.is_rewritten else words
            code = source_names.filled(row.op, row.code, seen)
            if row.is_read and not code:
                continue
            if row.code and not code:
                # The user's line does not show the arguments.
                call = source_names.in_words(row.op, row.code)
                return Suggestion("", f"{call} {words}")
            *_, last = ("", *row.met_next)
            last = {"all": last, "first": ""}.get(row.replaces, row.replaces)
            replaced = "", 0
            if row.code and row.replaces:
                outer = _OUTER.get(last, last)
                replaced = source_names.replaced(row.op, row.code, seen, outer)
            return Suggestion(source_names.safe_below(code), words, *replaced)
    if failure.fault == "constant":
        return Suggestion("", "")
    if failure.fault != "overflow":
        return Suggestion("", _SKIP)
    if failure.dtype not in {"float16", "bfloat16"}:
        return Suggestion("", SCALE)
    is_scaled = failure.is_gradient and failure.dtype == "float16"
    first = _HALF_GRADIENT if is_scaled else ""
    how = _OF_FUNCTION if failure.layer is None else _OF_LAYER
    return Suggestion("", f"{first}compute this part in float32, {how}")


def _or_rewritten(words: str, failure: Failure) -> str:
    """Adds that `stabilize` does it too, unless that is on."""
    return words if failure.is_stable else f"{words} {REWRITES}"


def _is_of(failure: Failure, name: str) -> bool:
    """Returns whether the operation that failed is part of a formula."""
    if not syntax.calls(name, failure.source):
        return False
    # The line has both: the innermost scope distinguishes them.
    is_inside = failure.scope.rpartition("/")[2].startswith(name.rpartition(".")[2])
    return is_inside or not syntax.is_written(failure.op, failure.source)


def _fits(row: Fix, failure: Failure) -> bool:
    when = "gradient" if failure.is_gradient else "forward"
    return (
        row.op == failure.op
        and row.when in {"", when}
        and row.fault in {"", failure.fault}
        and (not row.source or row.source in failure.producers)
        and (not row.last or row.last in failure.producers[-1:])
        and row.dtype in {"", failure.dtype}
        and row.kind in {"", failure.kind}
        and row.zero in {"", failure.zero, failure.zero_of}
        and re.search(row.written, failure.source) is not None
        and row.above_one <= failure.above_one
        and _begins(row.met_next, failure.met_next)
        and (not row.met_later or _meets(row.met_later, failure.met_next))
    )


def _begins(wanted: tuple[str, ...], paths: Sequence[tuple[str, ...]]) -> bool:
    if wanted[:1] in _PRODUCTS:
        # The first product is the program's, those after it may be of gradients.
        products = [path for path in paths if path[:1] in {("Mul",), *_PRODUCTS}]
        paths = products[:1]
    return not wanted or any(path[: len(wanted)] == wanted for path in paths)


def _meets(wanted: str, paths: Sequence[tuple[str, ...]]) -> bool:
    """Returns whether sums, multiples or elements of the values met an operation."""
    passed = (set(path[: path.index(wanted)]) for path in paths if wanted in path)
    return any(each <= _LINEAR for each in passed)
