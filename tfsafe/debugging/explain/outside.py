"""Describes a non-finite value that no operation of the call made."""

from typing import Any

import numpy as np

from tfsafe._faults import contained
from tfsafe._report import caller
from tfsafe._report.text import capital
from tfsafe.debugging import values
from tfsafe.debugging.explain import arrays
from tfsafe.debugging.explain.suggestions import choice as suggestions
from tfsafe.debugging.explain.suggestions.fixes import INFINITE_WEIGHT
from tfsafe.debugging.explain.training.optimizer import SCHEDULE
from tfsafe.debugging.tracing.origins import Origin
from tfsafe.errors import Finding
from tfsafe.graph import is_user_file

_ALL_NAN = (
    "reports all such rows before the training. All values are NaN after (y - mean) / "
    "std of a constant: divide by np.where(std > 0, std, 1). So they are after a mean "
    "with a missing number, which np.nanmean(y) and np.nanstd(y) leave out, and where "
    "text was read as numbers: read it as text and number the classes, as "
    "np.unique(labels, return_inverse=True)[1] does."
)
# Inside of NumPy nothing is followed.
FROM_NUMPY = (
    "where NumPy makes it, warnings.simplefilter('error', RuntimeWarning) raises on "
    "its line, in any thread."
)
_CONSTANT_FEATURE = (
    "reports all such rows before the training. Here feature {} is NaN in each row, as "
    "a constant one is after (x - mean) / std: divide by np.where(std > 0, std, 1), or "
    "leave it out."
)
_GAPS = (
    "reports all such rows before the training. Here feature {} is NaN in each row, as "
    "the mean of one with a missing number is: np.nanmean(x, axis=0) and np.nanstd(x, "
    "axis=0) leave it out, and np.nan_to_num((x - mean) / std) is 0 in its place."
)
_CONSTANT_OR_GAPS = (
    "reports all such rows before the training. Here feature {} is NaN in each row, as "
    "a constant one is after (x - mean) / std, and one with a missing number. Divide "
    "by np.where(std > 0, std, 1); np.nanmean(x, axis=0) and np.nanstd(x, axis=0) "
    "leave missing numbers out, and np.nan_to_num((x - mean) / std) is 0 in their "
    "place."
)
_CLASS_WEIGHT = (
    "`class_weight` holds it, where a count of samples is 0: 1 / np.maximum(count, 1) "
    "is finite."
)
_WEIGHTS = "start from finite weights: look at the initial values, or the checkpoint."
_ROW_OF_WEIGHTS = (
    "Row {} is NaN throughout, as that of a word without a vector is in a table of "
    "embeddings: np.nan_to_num(table) is 0 there."
)
_ROW = (
    "A row that is NaN throughout may be the header of a file, or an empty line: skip "
    "it, as skip_header=1 of np.genfromtxt does."
)
_IMAGE = (
    "One that is NaN throughout may have been constant, as an image of one colour is, "
    "before (x - mean) / std or (x - low) / (high - low): divide by np.where(std > 0, "
    "std, 1)."
)

_LOGARITHM = (
    "-inf may be a logarithm of 0 that NumPy took: np.log1p(x) is finite for counts, "
    "np.log(np.maximum(x, 1e-6)) for amounts."
)
_QUOTIENT = (
    "inf may be a quotient by 0 that NumPy took, as a change in percent from 0 is: "
    "np.divide(a, b, out=np.zeros_like(a), where=b != 0) is 0 there."
)


def finding_of(origin: Origin, facts: dict[str, Any], label: str) -> Finding:
    """Returns the finding for a value that no operation of the call made.

    Args:
      origin: The value.
      facts: What it has in common with other findings.
      label: The result that it reached.
    """
    holder = origin.holder or "a constant, or a tensor from outside"
    is_variable = holder.startswith(("variable", "a variable"))
    is_named = holder.startswith("`")
    # The name of the holder says more than the line that reads it first.
    site = None if origin.holder and not is_named else origin.place.site
    cause = "it was non-finite before the call."
    call = caller.user_call(is_user_file)
    survey = suggestions.survey(holder, call)
    source = None
    feature = -1 if is_variable else _nan_feature(origin)
    if not is_variable and feature < 0:
        with contained("the search for the array of a row"):
            source = arrays.holding(origin)
    # What a program calls to make a batch need not make the same one again.
    if source is not None and (is_named or not survey or "\n" in survey):
        survey = suggestions.survey(f"`{source.name}`", None)
    if is_variable:
        survey, words, rows = "", _WEIGHTS, _nan_rows(origin)
        if len(rows):
            words += f" {_ROW_OF_WEIGHTS.format(rows[0])}"
        elif facts["kind"] == "-Inf":
            words += f" {_LOGARITHM}"
    elif label.endswith("/learning_rate`"):
        survey, words = "", f"{SCHEDULE} {capital(FROM_NUMPY)}"
    elif "sample_weight" in holder and _is_of_classes(call):
        survey, words = "", _CLASS_WEIGHT
    else:
        words = _of_data(origin, holder, facts, feature, has_code=bool(survey))
        if is_named or not origin.holder:
            cause = "no operation of the call made it."
            words = (
                f"{words} {capital(FROM_NUMPY)}"
                if survey
                else (f"{FROM_NUMPY} If it is data, {words}")
            )
    if source is not None:
        cause += f" It is row {source.row} of `{source.name}`."
    return Finding(
        op_type="",
        op_name="",
        origin=holder,
        site=site,
        cause=cause,
        suggested_code=survey,
        suggestion=words,
        **facts,
    )


def _of_data(
    origin: Origin, holder: str, facts: dict[str, Any], feature: int, *, has_code: bool
) -> str:
    """Says how to find data that are not finite, or to repair them."""
    check = "" if has_code else "tfsafe.data.check_finite "
    if feature >= 0:
        words = _CONSTANT_OR_GAPS
        with contained("the search for a missing number"):
            if arrays.has_gaps(feature):
                words = _GAPS
            elif arrays.is_constant(feature, origin.value.shape[-1]):
                words = _CONSTANT_FEATURE
        return f"{check}{words.format(feature)}"
    if _is_nan_throughout(facts):
        return f"{check}{_ALL_NAN}"
    words = (
        f'{check}reports all such rows before the training; policy="drop" removes them.'
    )
    if len(_nan_rows(origin)):
        return f"{words} {_ROW if len(origin.value.shape) == 2 else _IMAGE}"
    if "_weight" in holder and "Inf" in facts["kind"]:
        return f"{words} {capital(INFINITE_WEIGHT)}"
    if "Inf" in facts["kind"]:
        is_quotient = "+Inf" in facts["kind"]
        return f"{words} {_QUOTIENT if is_quotient else _LOGARITHM}"
    return words


def _is_of_classes(call: caller.Call | None) -> bool:
    """Returns whether `fit` makes the weights of the samples of those of classes."""
    given = call.keywords if call else {}
    return "class_weight" in given and "sample_weight" not in given


def _nan_feature(origin: Origin) -> int:
    """Returns the number of the one feature that is NaN in every row; -1 without."""
    is_nan = np.isnan(values.numbers(origin.value))
    if is_nan.ndim < 2 or len(is_nan) < 2 or is_nan.shape[-1] < 2:
        return -1
    features = is_nan.reshape(-1, is_nan.shape[-1])
    whole = np.flatnonzero(features.all(0))
    return int(whole[0]) if len(whole) == 1 else -1


def _nan_rows(origin: Origin) -> np.ndarray:
    """Returns the numbers of the rows with NaN alone; none if each is such a row."""
    is_nan = np.isnan(values.numbers(origin.value))
    if is_nan.ndim < 2 or is_nan[0].size < 2:
        return np.array([], int)
    is_row = is_nan.reshape(len(is_nan), -1).all(1)
    return np.array([], int) if is_row.all() else np.flatnonzero(is_row)


def _is_nan_throughout(facts: dict[str, Any]) -> bool:
    return facts["kind"] == "NaN" and facts["count"] == facts["size"] > 1
