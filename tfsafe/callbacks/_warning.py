"""Warnings that point at the user's line, such as that of `model.fit`."""

import sys
import types
import warnings

from tfsafe.graph import is_user_file


def warn(message: str) -> None:
    """Warns with `RuntimeWarning`, past the frames of Keras and tfsafe."""
    level = 1
    outer: types.FrameType | None = sys._getframe()
    while outer is not None and not is_user_file(outer.f_code.co_filename):
        level, outer = level + 1, outer.f_back
    warnings.warn(message, RuntimeWarning, stacklevel=level if outer else 1)
