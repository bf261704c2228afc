"""Describes what is wrong with labels, matrices and texts, for the table of causes."""

from collections.abc import Callable
from typing import NamedTuple

import numpy as np

from tfsafe._limits import LIMITS
from tfsafe.debugging import values

_LABEL = "a label value of "


class Evidence(NamedTuple):
    """What is known of the operation that failed.

    Attributes:
      inputs: Its inputs as arrays, floats as float64.
      output: Its non-finite output as an array.
      nonfinite: Which elements of the output became non-finite here.
      dtype: Name of the output's dtype.
      scope: Name scope of the operation, if known.
      slope_of: Type of the operation whose gradient it belongs to, if to one.
      text: The text that it reads, if it reads one.
    """

    inputs: list[np.ndarray]
    output: np.ndarray
    nonfinite: np.ndarray
    dtype: str
    scope: str = ""
    slope_of: str = ""
    text: str = ""


Test = Callable[[Evidence], str]


def where(mask: np.ndarray) -> str:
    """Returns the first index at which a mask is true, in brackets."""
    if mask.ndim == 0:
        return ""
    return f" ({'the first ' if mask.sum() > 1 else ''}at {values.first(mask)})"


def counted(mask: np.ndarray, one: str, many: str) -> str:
    """Returns how often a mask is true, with a noun."""
    number = int(mask.sum())
    return f"{number} {one if number == 1 else many}" if number else ""


def unknown_label(evidence: Evidence) -> str:
    """Recognises where the losses of class indices divide an unknown label by 0."""
    if not evidence.scope.endswith("label_outside_the_classes"):
        return ""
    labels, divisors = evidence.inputs
    return _outside(labels, divisors.max(), np.isnan(evidence.output))


def label_outside(evidence: Evidence) -> str:
    """Recognises a label for which TensorFlow's kernel, compiled by XLA, gives NaN."""
    logits, labels = evidence.inputs
    classes = logits.shape[-1]
    unknown = (labels < 0) | (labels >= classes)
    return _outside(labels, classes, unknown) if unknown.any() else ""


def _outside(labels: np.ndarray, classes: float, unknown: np.ndarray) -> str:
    value = labels[unknown].flat[0]
    valid = f" of [0, {classes:.0f})" if classes else ""
    return f"{_LABEL}{value:g} is outside the valid range{valid}{where(unknown)}"


def negative(test: Test) -> Test:
    """Restricts a test of labels to a first one below 0."""

    def restricted(evidence: Evidence) -> str:
        found = test(evidence)
        return found if found.startswith(f"{_LABEL}-") else ""

    return restricted


def _lowest_eigenvalue(evidence: Evidence) -> tuple[float, float]:
    """Returns that of the first matrix that failed, and what rounding makes of 0."""
    (x,) = evidence.inputs
    size = x.shape[-1]
    failed = evidence.nonfinite.reshape(-1, size * size).any(-1)
    matrix = x.reshape(-1, size, size)[failed.argmax()]
    if evidence.dtype not in LIMITS or not np.isfinite(matrix).all():
        return np.nan, 0.0
    found = np.linalg.eigvalsh(matrix)
    return found[0], size * LIMITS[evidence.dtype].eps * abs(found).max()


def indefinite(evidence: Evidence) -> str:
    """Recognises a matrix with an eigenvalue below 0."""
    lowest, rounding = _lowest_eigenvalue(evidence)
    below = f"the matrix has the eigenvalue {lowest:.4g}, and so no Cholesky factor"
    return below if lowest < -rounding else ""


def singular(evidence: Evidence) -> str:
    """Recognises a matrix whose lowest eigenvalue is 0, but for rounding."""
    lowest, rounding = _lowest_eigenvalue(evidence)
    return "the matrix is singular" if abs(lowest) <= rounding else ""


def of_text(evidence: Evidence) -> str:
    """Recognises a number that is read from a text."""
    return f"the text {evidence.text!r} holds it" if evidence.text else ""
