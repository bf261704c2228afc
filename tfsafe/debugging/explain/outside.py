"""Describes a non-finite value that no operation of the call made."""

from typing import Any

import numpy as np

from tfsafe._report import caller
from tfsafe.debugging import values
from tfsafe.debugging.explain.suggestions import choice as suggestions
from tfsafe.debugging.tracing.provenance import Origin
from tfsafe.errors import Finding
from tfsafe.graph import is_user_file

_UNREAD = (
    "reports all such rows before the training. Where all values are NaN, text may "
    "have been read as numbers: read it as text and number the classes, as "
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


def finding_of(origin: Origin, facts: dict[str, Any]) -> Finding:
    """Returns the finding for a value that no operation of the call made.

    Args:
      origin: The value.
      facts: What it has in common with other findings.
    """
    holder = origin.holder or "a constant, or a tensor from outside"
    is_variable = holder.startswith(("variable", "a variable"))
    # The name of the holder says more than the line that reads it first.
    site = None if origin.holder else origin.place.site
    cause = "it was non-finite before the call."
    survey = suggestions.survey(holder, caller.user_call(is_user_file))
    check = "" if survey else "tfsafe.data.check_finite "
    words = (
        f'{check}reports all such rows before the training; policy="drop" removes them.'
    )
    if is_variable:
        words = "start from a checkpoint whose weights are finite."
    elif not origin.holder:
        cause = "no operation of the call made it."
        words = f"{FROM_NUMPY} If it is data, {words}"
    elif holder.startswith("argument") and (feature := _nan_feature(origin)) >= 0:
        words = f"{check}{_CONSTANT_FEATURE.format(feature)}"
    elif holder.startswith("argument") and _is_nan_throughout(facts):
        words = f"{check}{_UNREAD}"
    return Finding(
        op_type="",
        op_name="",
        origin=holder,
        site=site,
        cause=cause,
        suggested_code="" if is_variable else survey,
        suggestion=words,
        **facts,
    )


def _nan_feature(origin: Origin) -> int:
    """Returns the number of the one feature that is NaN in every row; -1 without."""
    is_nan = np.isnan(values.numbers(origin.value))
    if is_nan.ndim < 2 or len(is_nan) < 2 or is_nan.shape[-1] < 2:
        return -1
    features = is_nan.reshape(-1, is_nan.shape[-1])
    whole = np.flatnonzero(features.all(0))
    return int(whole[0]) if len(whole) == 1 else -1


def _is_nan_throughout(facts: dict[str, Any]) -> bool:
    return facts["kind"] == "NaN" and facts["count"] == facts["size"] > 1
