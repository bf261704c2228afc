"""Tells the warnings of the package from those of TensorFlow."""

import warnings
from collections.abc import Iterable


def ours(
    caught: Iterable[warnings.WarningMessage],
) -> list[warnings.WarningMessage]:
    """Returns all but TensorFlow's own of NumPy 2 and of Python 3.13."""
    return [w for w in caught if not issubclass(w.category, DeprecationWarning)]
