"""Runs the rows of the catalogue, and says what each form gives."""

import ast
import dataclasses
import functools
import importlib
import inspect
import pkgutil
import re
from typing import Any
from unittest import mock

import numpy as np
import tensorflow as tf

from tests import catalogue
from tests.support import contrast, modes

# What users read in their terminals; the search of the site finds these too.
_NAN = (
    "`loss: nan` in the output of `fit`; "
    '"Invalid loss, terminating training" from `TerminateOnNaN`; '
    '"Tensor had NaN values" from `tf.debugging.check_numerics`'
)
_INF = (
    "`loss: inf` in the output of `fit`; "
    '"Tensor had Inf values" from `tf.debugging.check_numerics`'
)
_GRADIENT = (
    "a finite loss, and `loss: nan` from the second step on; weights that are NaN; "
    '"Tensor had NaN values" from `tf.debugging.check_numerics` on a gradient'
)
_NONE = np.zeros(0)
_WRONG = "no error text: the number is finite and wrong"


@dataclasses.dataclass(frozen=True)
class Measured:
    """The two forms of a row, as Python, and what they give.

    Attributes:
      usual: TensorFlow's or Keras' form, or empty text.
      ours: tfsafe's form, or empty text.
      args: The arguments.
      got: Value and gradients of the usual form; empty if it raised an error, or if
        several values show what is wrong.
      right: The right value and gradients.
      raised: The error of the usual form, or empty text.
      check: Source of the check of several values, or empty text.
    """

    usual: str = ""
    ours: str = ""
    args: tuple[Any, ...] = ()
    got: tuple[Any, ...] = ()
    right: tuple[Any, ...] = ()
    raised: str = ""
    check: str = ""


def of(row: Any) -> Measured:
    """Runs the usual form of a row in the first mode in which it fails."""
    found: list[Measured] = []

    def record(function, args, value, gradients, mode):
        with contrast.without_grappler():
            got, slopes = modes.value_and_gradients(function, args, mode)
        found.append(
            Measured(args=tuple(args), got=(got, *slopes), right=(value, *gradients))
        )
        return False

    mode = "eager" if "eager" in row.fails_in else row.fails_in[0]
    raised = ""
    with mock.patch.object(contrast, "is_right", record):
        try:
            row.usual(mode)
        except Exception as error:
            raised = f"{type(error).__name__}: {_first_line(error)}"
    usual, ours = _forms().get(row.id, ("", ""))
    if found:
        return dataclasses.replace(found[0], usual=usual, ours=ours)
    around: Any = {}
    if inspect.isfunction(row.usual) and not usual:
        around = inspect.getclosurevars(row.usual).nonlocals
    if "function" in around and "is_right" in around:
        return _of_value(around["function"], around["is_right"], mode)
    check = "" if usual else _check(row.usual)
    return Measured(usual=usual, ours=ours, raised=raised, check=check)


def _of_value(function: Any, is_right: Any, mode: str) -> Measured:
    """Runs a formula whose row compares one value, which its test has at hand."""
    known = inspect.getclosurevars(is_right).nonlocals
    args = tuple(np.asarray(each, "float32") for each in known["args"])
    got = modes.compile_for(mode, function)(*map(tf.constant, args))
    return Measured(
        usual=inspect.getsource(function).rstrip(),
        ours=f"f = tfsafe.stabilize({function.__name__})",
        args=args,
        got=(got,),
        right=(np.asarray(known["value"], "float32"),),
    )


def _first_line(error: Exception) -> str:
    """Returns what an error says first, without Keras' frame and TensorFlow's names."""
    lines = [line for line in str(error).splitlines() if line.strip()]
    at = 1 if len(lines) > 1 and lines[0].startswith("Exception encountered") else 0
    return re.sub(r"\x1b\[\d*m|\{\{.*?\}\} | \[Op:.*", "", lines[at])


def _check(function: Any) -> str:
    """Returns the source of the function that tests a form, or that makes the test."""
    function = getattr(function, "func", function)
    outermost = function.__qualname__.partition(".")[0]
    return inspect.getsource(getattr(inspect.getmodule(function), outermost)).rstrip()


@functools.cache
def _forms() -> dict[str, tuple[str, str]]:
    """Returns the source of both forms of the rows that are formulas."""
    forms = {}
    for module in pkgutil.iter_modules(catalogue.__path__):
        if module.name.startswith("__"):
            continue
        loaded = importlib.import_module(f"tests.catalogue.{module.name}")
        for node in ast.walk(ast.parse(inspect.getsource(loaded))):
            if not isinstance(node, ast.Call) or len(node.args) < 5:
                continue
            first = node.args[0]
            if (
                isinstance(first, ast.Constant)
                and getattr(node.func, "id", "") == "formula"
            ):
                forms[first.value] = (_source(node.args[3]), _source(node.args[4]))
    return forms


def _source(node: ast.expr) -> str:
    if isinstance(node, ast.Lambda):
        return re.sub(r"(?<![\w.])ops\.", "tfsafe.ops.", f"f = {ast.unparse(node)}")
    return "" if ast.unparse(node).startswith("_") else f"f = {ast.unparse(node)}"


def as_text(found: Measured) -> list[str]:
    """Returns the paragraphs of a page that show the forms and their results."""
    parts = []
    if found.usual:
        parts.append(f"The usual form:\n\n```py\n{found.usual}\n```")
    if found.got:
        rows = [("value", *(_cell(each[0]) for each in (found.got, found.right)))]
        pairs = zip(found.got[1:], found.right[1:], strict=True)
        rows += [
            (
                f"gradient {n}" if len(found.got) > 2 else "gradient",
                _cell(got),
                _cell(right),
            )
            for n, (got, right) in enumerate(pairs, 1)
        ]
        args = "; ".join(_cell(each) for each in found.args)
        table = ["| | TensorFlow gives | right |", "|---|---|---|"]
        table += [f"| {name} | {got} | {right} |" for name, got, right in rows]
        parts += [f"For {args}:", "\n".join(table)]
    if found.raised and not found.got:
        parts.append(f"TensorFlow raises `{found.raised}`")
    if found.check:
        parts.append(
            "Several values show it, not one. The test runs this code, which the usual "
            f"form fails and the form of tfsafe passes:\n\n```py\n{found.check}\n```"
        )
    if found.ours:
        parts.append(f"The line that fixes it:\n\n```py\n{found.ours}\n```")
    return parts


def symptoms(found: Measured) -> str:
    """Returns the texts under which users find what happened."""
    if not found.got:
        return f"`{found.raised}`." if found.raised else f"{_NAN}; {_INF}."
    arrays = [_array(each) for each in found.got if each is not None]
    value, *slopes = [each for each in arrays if each.dtype.kind in "biuf"] or [_NONE]
    if value.dtype.kind in "biu":
        return f"{_WRONG}."
    if np.isnan(value.astype("float64")).any():
        return f"{_NAN}."
    if np.isinf(value.astype("float64")).any():
        return f"{_INF}."
    finite = all(np.isfinite(each.astype("float64")).all() for each in slopes)
    return f"{_WRONG if finite else _GRADIENT}."


def _array(value: Any) -> np.ndarray:
    if isinstance(value, tf.IndexedSlices):
        value = tf.convert_to_tensor(value)
    try:
        array = np.asarray(value)
    except ValueError:
        # An object that stands for any right value.
        return np.asarray(None)
    # NumPy itself has no bfloat16.
    return array.astype("float32") if array.dtype.name == "bfloat16" else array


def _cell(value: Any) -> str:
    if value is None:
        return "none"
    if value is contrast.FINITE:
        return "finite"
    array = _array(value)
    if array.dtype.kind not in "biufcV":
        return "see the test"
    shown = array.ravel()[:6].astype(
        "complex128" if array.dtype.kind == "c" else "float64"
    )
    text = ", ".join(f"{each:.6g}" for each in shown)
    more = ", ..." if array.size > 6 else ""
    return f"`{text}{more}`" if array.ndim == 0 else f"`[{text}{more}]`"
