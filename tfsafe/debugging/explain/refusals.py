"""Explains errors that are raised for numeric reasons, in place of a NaN.

A kernel refuses a label that is not a class, a position outside of a tensor or a matrix
without an inverse. Its error says what, but not why, nor what to write instead.
"""

import contextlib
import functools
import re
import traceback
import types
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np
import tensorflow as tf

from tfsafe import _compat
from tfsafe._limits import LIMITS
from tfsafe.debugging import values
from tfsafe.debugging.explain import message
from tfsafe.debugging.explain.evidence import Evidence, label_outside
from tfsafe.debugging.explain.suggestions import choice, statements
from tfsafe.debugging.explain.training.layers import Layers
from tfsafe.debugging.tracing import earlier
from tfsafe.debugging.tracing.provenance import Propagation
from tfsafe.debugging.tracing.results import NonFinite
from tfsafe.errors import Finding, NumericsError, Site
from tfsafe.graph import site_of

# Attribute of an error: runs the call again up to the operation that raised it.
_AGAIN = "_tfsafe_again"
_NODE = re.compile(r"\{\{node ([^}]+)\}\}")
_KERNEL = re.compile(r"\[Op:([A-Z]\w*)\]")
_FRAME = re.compile(r'^  File "([^"]+)", line (\d+), in (.+)$', re.MULTILINE)
_GENERATED = re.compile(r"\bgen_\w+_ops\.py$")
# What a cast to an integer makes of NaN.
_OF_NAN = {np.iinfo(each).min for each in (np.int32, np.int64)}
_CAST = "which is what a cast to an integer makes of NaN"


class Raised(NamedTuple):
    """What is known of an operation that raised an error.

    Attributes:
      inputs: Its inputs; empty where they are not known.
      followed: What followed the values that led to it.
    """

    inputs: Sequence[Any] = ()
    followed: Propagation | None = None


class Refusal(NamedTuple):
    """One row: a message of TensorFlow, and what it means.

    Attributes:
      pattern: The message, as a regular expression.
      op: Type of the operation that most often raises it.
      explain: Returns the cause in words, and the kind of the fault.
    """

    pattern: str
    op: str
    explain: Callable[[re.Match[str], Raised], tuple[str, str]]


@contextlib.contextmanager
def noted(again: Callable[[], Raised]) -> Iterator[None]:
    """Notes with an error of the block how to find what its operation was given.

    Args:
      again: Runs what the block runs once more, up to that operation.

    Raises:
      OpError: That of the block.
    """
    try:
        yield
    except tf.errors.OpError as error:
        error.__dict__.setdefault(_AGAIN, again)
        raise


def explained(error: BaseException) -> NumericsError | None:
    """Explains an error of TensorFlow's, if it has a numeric reason.

    Args:
      error: The error, with its whole traceback.

    Returns:
      What made the NaN that the operation refused, or why it refused numbers; None for
      an error of another kind.
    """
    is_numeric = isinstance(error, tf.errors.OpError | np.linalg.LinAlgError)
    is_of_labels = any(name == "to_categorical" for _, _, name in _frames(error))
    if not is_numeric and not is_of_labels:
        return None
    found = ((re.search(row.pattern, str(error)), row) for row in REFUSALS)
    match, row = next(((m, row) for m, row in found if m), (None, None))
    if match is None or row is None:
        return None
    raised = _raised(error)
    op_type, scope = _operation(str(error), row.op)
    cause, fault = row.explain(match, raised)
    if fault == "nan" and (made := _made_of_nan(op_type, raised)) is not None:
        return made
    site = _site(error)
    if site is not None and "[Op:IteratorGetNext" in str(error):
        # The functions of a data set have no stacks.
        site = statements.only(site, op_type)
    site, source = statements.within(site, op_type)
    layers, frame = Layers(), _innermost(error)
    is_exact = not scope and frame is not None
    if frame is not None and is_exact:
        scope = _compat.layers_on_stack(frame)
    failure = choice.Failure(
        op_type,
        fault,
        False,
        "",
        [],
        source,
        scope,
        layer=layers.class_of(scope, is_exact),
        place=(site.path, site.line) if site else ("", 0),
    )
    fix = choice.fix_of(failure)
    words = fix.words.replace("TEXT", match.groupdict().get("text") or "")
    finding = Finding(
        kind=type(error).__name__,
        op_type=op_type,
        op_name="",
        dtype="",
        count=0,
        size=0,
        index=(),
        site=site,
        scope=scope,
        layer=layers.path_of(scope, is_exact),
        cause=f"{cause}.",
        suggested_code=fix.code,
        suggestion=words,
        replaces=fix.replaces,
        replaced_line=fix.replaced_line,
    )
    return NumericsError(str(finding), [finding])


def _raised(error: Any) -> Raised:
    """Returns what is known of the operation that raised an error."""
    frame = _innermost(error)
    while frame is not None and not _GENERATED.search(frame.f_code.co_filename):
        frame = frame.f_back
    if frame is not None:
        code = frame.f_code
        named = map(frame.f_locals.get, code.co_varnames[: code.co_argcount])
        inputs = [each for each in named if isinstance(each, tf.Tensor)]
        return Raised(inputs, earlier.followed())
    again = error.__dict__.get(_AGAIN)
    return again() if again is not None else Raised()


def _innermost(error: BaseException) -> types.FrameType | None:
    frames = [frame for frame, _ in traceback.walk_tb(error.__traceback__)]
    return frames[-1] if frames else None


def _made_of_nan(op_type: str, raised: Raised) -> NumericsError | None:
    """Returns the error of what made the NaN in an input of an operation."""
    if (followed := raised.followed) is None:
        return None
    label = f"the input of `{op_type}`"
    results = [
        NonFinite(
            label,
            each,
            each,
            followed.origins(each),
            functools.partial(followed.path, each),
            followed.met_next,
        )
        for each in raised.inputs
        if values.is_float(each) and followed.origins(each)
    ]
    if not raised.inputs:
        # A replay passes a check of the program's: what that found is the first.
        met = [each for each in followed.all if not each.is_intended][:1]
        results = [NonFinite(label, None, origins=frozenset([each])) for each in met]
    return message.numerics_error(results) if results else None


def _operation(text: str, usual: str) -> tuple[str, str]:
    """Returns the type of the operation that a message names, and its name scope."""
    node, kernel = _NODE.search(text), _KERNEL.search(text)
    scope, _, name = node[1].rpartition("/") if node else ("", "", "")
    names = (re.sub(r"_\d+$", "", name), kernel[1] if kernel else "")
    # A node that the program named, or a data set that ran it.
    known = (each for each in names if each and hasattr(tf.raw_ops, each))
    found = next((each for each in known if not each.startswith("Iterator")), usual)
    return found, scope.removesuffix(f"/{found}")


def _site(error: BaseException) -> Site | None:
    """Returns the user's line: that of the trace, or else the innermost that ran."""
    noted = [(path, int(line), name) for path, line, name in _noted(str(error))]
    return site_of(noted) or site_of(_frames(error))


def _noted(text: str) -> Sequence[Sequence[str]]:
    """Returns the frames that TensorFlow noted for the first operation it names."""
    first, *_ = text.split("\nDetected at node")[:2][-1:]
    return _FRAME.findall(first)


def _frames(error: BaseException) -> Iterator[tuple[str, int, str]]:
    for frame, line in traceback.walk_tb(error.__traceback__):
        yield frame.f_code.co_filename, line, frame.f_code.co_name


def _label(match: re.Match[str], _: Raised) -> tuple[str, str]:
    value, classes, shown = int(match[1]), int(match[2]), match[3].split()
    labels = np.array([int(each) for each in shown if re.fullmatch(r"-?\d+", each)])
    if not np.any((labels < 0) | (labels >= classes)):
        labels = np.array([value])
    logits = np.zeros([labels.size, classes])
    cause = label_outside(Evidence([logits, labels], logits, logits, "float32"))
    if labels.size > 1:
        cause += f"; those of this step are {labels.min()} to {labels.max()}"
    if value in _OF_NAN:
        return f"{cause}, {_CAST}", "nan"
    if classes == 1:
        return f"{cause}, as for a model with 1 output", "one class"
    return cause, "negative label" if labels.min() < 0 else "label"


def _index(match: re.Match[str], _: Raised) -> tuple[str, str]:
    at = _position(match["at"])
    value, size = match["value"], match["size"]
    cause = f"the position {value} is outside the valid range of [0, {size}), at {at}"
    if int(value) in _OF_NAN:
        return f"{cause}, {_CAST}", "nan"
    return cause, "negative index" if int(value) < 0 else "index"


def _point(match: re.Match[str], _: Raised) -> tuple[str, str]:
    at, position, shape = match.groups()
    where = f"the position [{position}] at {_position(at)}"
    return f"{where} is outside [{shape}]", "index"


def _position(text: str) -> tuple[int, ...]:
    return tuple(map(int, text.split(",")))


def _not_invertible(_: re.Match[str], raised: Raised) -> tuple[str, str]:
    if not raised.inputs:
        return "the matrix is singular, or holds NaN", "singular"
    given = values.numbers(raised.inputs[0])
    size, dtype = given.shape[-1], values.array(raised.inputs[0]).dtype.name
    for index in np.ndindex(given.shape[:-2]):
        matrix, which = given[index], f" {index}" if index else ""
        if not np.isfinite(matrix).all():
            return f"the matrix{which} holds {values.kind(matrix)}", "nan"
        eps = LIMITS[dtype].eps if dtype in LIMITS else np.finfo(float).eps
        rank = np.linalg.matrix_rank(matrix, size * eps * np.linalg.norm(matrix, 2))
        if rank < size:
            return f"the matrix{which} is singular, of rank {rank}", "singular"
    return "the matrix is singular", "singular"


def _category(match: re.Match[str], _: Raised) -> tuple[str, str]:
    label, classes = match.groups()
    return f"a label of {label} is outside the valid range of [0, {classes})", "label"


def _says(cause: str, fault: str) -> Callable[[re.Match[str], Raised], tuple[str, str]]:
    return lambda match, _: (match.expand(cause), fault)


_PLACE = (
    r"\[(?P<at>[\d,]+)\] = (?P<value>-?\d+) is "
    r"(?:not in|out of range) \[0, (?P<size>\d+)\)"
)
_EIGEN = "the matrix holds NaN or Inf, which have no eigenvalues"
REFUSALS = [
    Refusal(
        r"^index (-?\d+) is out of bounds for axis 1 with size (\d+)",
        "to_categorical",
        _category,
    ),
    Refusal("^Singular matrix", "np.linalg", _not_invertible),
    Refusal(
        "^Matrix is not positive definite",
        "np.linalg",
        _says("the matrix is not positive definite", "singular"),
    ),
    Refusal(
        r"label value of (-?\d+) which is outside the valid range of \[0, (\d+)\)\."
        r"\s+Label values: ([-\d. ]+)",
        "SparseSoftmaxCrossEntropyWithLogits",
        _label,
    ),
    Refusal(r"\b(?:indices|partitions|segment_ids)" + _PLACE, "GatherV2", _index),
    Refusal(
        r"indices\[([\d,]+)\] = \[([-\d, ]+)\] (?:does not index into|is out of bounds)"
        r".*? ?(?:shape |index < )\[([\d,]+)\]",
        "GatherNd",
        _point,
    ),
    Refusal("matrix is not invertible", "MatrixSolve", _not_invertible),
    Refusal("Input is not invertible", "MatrixInverse", _not_invertible),
    Refusal(
        r"Self-adjoint eigen decomposition was not successful",
        "SelfAdjointEigV2",
        _says(_EIGEN, "nan"),
    ),
    Refusal(r"Eigen decomposition was not successful", "Eig", _says(_EIGEN, "nan")),
    Refusal(
        "Cholesky decomposition was not successful",
        "Cholesky",
        _says("the matrix is not positive definite", "negative"),
    ),
    Refusal(
        "Integer division by zero", "FloorDiv", _says("an integer is divided by 0", "")
    ),
    Refusal(
        "Input arr must be non-negative",
        "DenseBincount",
        _says("a number below 0 has no count", "index"),
    ),
    Refusal(
        r"correctly convert string: (?P<text>.*?)(?: \[Op|\n|$)",
        "StringToNumber",
        _says(r"the text '\g<text>' is not a number", "no number"),
    ),
    Refusal(
        r"Field (\d+) in record (\d+) is not a valid \w+: (?P<text>.*?)(?: \[Op|\n|$)",
        "DecodeCSV",
        _says(r"the text '\g<text>' in column \1 is not a number", "no number"),
    ),
    Refusal(
        r"Field (\d+) is required but missing",
        "DecodeCSV",
        _says(r"column \1 is empty", "no field"),
    ),
    Refusal(
        r": Tensor had (NaN|Inf|-Inf|NaN and Inf|.*?) values",
        "CheckNumerics",
        _says(r"the tensor that is checked holds \1", "nan"),
    ),
]
