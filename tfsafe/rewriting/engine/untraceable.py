"""Explains why a function cannot be traced: it asks tensors for their values."""

import re
import traceback

import tensorflow as tf

from tfsafe.graph import is_user_file

# What TensorFlow says where NumPy, `float` or `.numpy()` gets a tensor without values.
_TEXTS = (
    "to a numpy array",
    "has no attribute 'numpy'",
    "only accepts eager tensors",
    "must be a real number",
)
# A frame in the text of AutoGraph: path, line and source.
_FRAME = re.compile(r'File "([^"]+)", line (\d+), in .*\n +(.*)')
_NUMPY = re.compile(r"\b(?:np|numpy)\.(\w+)\(")
_PLACES = {"tf.math": tf.math, "tf": tf}


def needs_values(error: Exception, name: str) -> TypeError | None:
    """Returns an error that names the line and the fix, if that is what happened."""
    if not isinstance(error, NotImplementedError | AttributeError | TypeError):
        return None
    if not any(text in str(error) for text in _TEXTS):
        return None
    frames = [
        (path, line, source.strip())
        for path, line, source in _frames(error)
        if is_user_file(path)
    ]
    path, line, source = frames[-1] if frames else ("an unknown file", "?", "")
    found = _NUMPY.search(source)
    caller = "NumPy" if found else "`.numpy()`" if ".numpy(" in source else "Python"
    return TypeError(
        f"`{name}` cannot be traced, and so not be rewritten: line {line} of {path} "
        f"has {caller} compute with a tensor, which has no values in a trace.\n"
        f"    {source}\n{_fix(found)}"
    )


def _frames(error: Exception) -> list[tuple[str, int | str, str]]:
    parsed = _FRAME.findall(str(error))
    stack = traceback.extract_tb(error.__traceback__)
    return parsed or [
        (each.filename, each.lineno or 0, each.line or "") for each in stack
    ]


def _fix(found: re.Match[str] | None) -> str:
    for place, module in _PLACES.items():
        if found and hasattr(module, found[1]):
            return f"Use `{place}.{found[1]}`."
    return (
        "Use TensorFlow's functions, `tf.math` and `tf.linalg` for instance; or "
        "compute it outside of the function and pass the result."
    )
