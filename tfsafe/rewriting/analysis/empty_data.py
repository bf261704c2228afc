"""Recognises quotients of sums that are 0 / 0 for empty or zero data."""

import tensorflow as tf

from tfsafe.graph import DIVISIONS, SEGMENT_SUMS, SUMS, OpFact, op_types
from tfsafe.rewriting.facts.tensors import Reader, is_float
from tfsafe.rewriting.match.arithmetic import number, square_of, walk
from tfsafe.rewriting.match.reductions import reshaped

_SCATTERED = {"ScatterNd", "TensorScatterAdd"}
_EXTREMES = {"Max", "Min"}
_SUMMED = {"Sum", "Mean", "EuclideanNorm", *SEGMENT_SUMS} | _EXTREMES
_PRODUCTS = {"Mul", "MatMul", "BatchMatMulV2", "Einsum"}
_BETWEEN = {"Maximum", "Minimum"}
_LAYOUTS = op_types(OpFact.RESHAPES) | {
    *("BroadcastTo", "Cumsum", "GatherV2", "StridedSlice", "Tile", "TopKV2"),
    *("Transpose",),
}
_SAME_DEGREE = _LAYOUTS | _SUMMED | {"Abs", "Neg", "Relu"}
_HISTOGRAMS = {"Bincount", "DenseBincount"}
_TOTALS = (
    {"BatchMatMulV2", "Einsum", "MatMul", "Sum"}
    | SEGMENT_SUMS
    | _SCATTERED
    | _HISTOGRAMS
)
_SCALED = _LAYOUTS | {"Abs", "Mul", "Neg"}
_FORMULA = op_types(OpFact.ELEMENTWISE) | _LAYOUTS | DIVISIONS | SUMS | {"Mul", "Pow"}
# Deeper formulas are left alone.
_DEPTH = 12


class _Zeros:
    """What is 0 where a divisor is.

    Attributes:
      is_joint: Whether several numbers have to be 0 at once, so that the quotient has
        no limit.
    """

    def __init__(self, reader: Reader, divisor: tf.Tensor):
        self._reader = reader
        # By the number of a tensor that is 0: the power with which it vanishes.
        self._found: dict[int, float] = {}
        # A tensor can be reached on many ways; each is followed once.
        self._expanded: dict[tuple[int, float, bool], int] = {}
        self._degrees: dict[tuple[int, int], float] = {}
        # A sum of all elements is of those of every other sum.
        self._is_whole = divisor.shape.rank == 0
        self.is_joint = False
        self._expand(divisor, 1.0, _DEPTH, False)

    def _expand(
        self, tensor: tf.Tensor, degree: float, depth: int, is_summed: bool
    ) -> None:
        if self._reader.constant(tensor) is not None:
            return
        alike = self._reader.number(tensor)
        way = alike, degree, is_summed
        if self._expanded.get(way, -1) >= depth:
            return
        self._expanded[way] = depth
        self._found[alike] = max(self._found.get(alike, 0.0), 1 / degree)
        op = self._reader.op(tensor)
        if not depth or not op.inputs:
            return
        inputs = [op.inputs[0]]
        power = _power(self._reader, tensor)
        if op.type in SUMS:
            u = _exponent(self._reader, op)
            if u is not None:
                inputs = [u]
            elif is_summed and not (self._is_whole or _is_centred(self._reader, op)):
                return
            else:
                inputs, self.is_joint = list(op.inputs), True
        elif op.type in _BETWEEN:
            inputs, self.is_joint = list(op.inputs), True
        elif op.type in _PRODUCTS and power == 1:
            self.is_joint |= op.type != "Mul"
            inputs, is_summed = list(op.inputs), is_summed or op.type != "Mul"
        elif op.type in _SUMMED:
            self.is_joint = is_summed = True
        elif power == 0:
            return
        for each in inputs:
            self._expand(each, degree * power, depth - 1, is_summed)

    def degree(self, tensor: tf.Tensor, depth: int = _DEPTH) -> float:
        """Returns the power with which a tensor vanishes; 0 if it need not."""
        if self._reader.constant(tensor) is not None:
            return 0.0
        alike = self._reader.number(tensor)
        if alike in self._found:
            return self._found[alike]
        if (alike, depth) not in self._degrees:
            self._degrees[alike, depth] = self._degree(tensor, depth)
        return self._degrees[alike, depth]

    def _degree(self, tensor: tf.Tensor, depth: int) -> float:
        reader = self._reader
        op = reader.op(tensor)
        power = _power(reader, tensor)
        if not depth or not op.inputs or not power:
            return 0.0
        if op.type in SUMS | _BETWEEN:
            u = _exponent(reader, op)
            inputs = [u] if u is not None else list(op.inputs)
            # Next to another number a part that vanishes changes nothing.
            if any(reader.scalar(each) for each in inputs):
                return 0.0
            return max(self.degree(each, depth - 1) for each in inputs)
        if power < 1 and reader.op(op.inputs[0]).type in SUMS:
            inner = reader.op(op.inputs[0]).inputs
            return power * min(self.degree(each, depth - 1) for each in inner)
        if op.type in _PRODUCTS and square_of(reader, tensor) is None:
            return sum(self.degree(each, depth - 1) for each in op.inputs)
        return power * self.degree(op.inputs[0], depth - 1)


def _power(reader: Reader, tensor: tf.Tensor) -> float:
    """Returns the degree of an operation in its first input; 0 if it has none."""
    op = reader.op(tensor)
    if square_of(reader, tensor) is not None:
        return 2.0
    if op.type in {"Sqrt", "SquaredDifference"}:
        return 0.5 if op.type == "Sqrt" else 0.0
    if op.type == "Pow":
        exponent = number(reader, op.inputs[1], op.inputs[0])
        return exponent if exponent is not None and exponent > 0 else 0.0
    if op.type in DIVISIONS:
        return 0.0 if reader.constant(op.inputs[1]) is None else 1.0
    is_linear = op.type in _SAME_DEGREE | SUMS | _PRODUCTS | _BETWEEN
    return 1.0 if is_linear else 0.0


def _exponent(reader: Reader, op: tf.Operation) -> tf.Tensor | None:
    """Recognises `2 ** u - 1`; returns `u`."""
    if op.type != "Sub" or reader.scalar(op.inputs[1]) != 1:
        return None
    power = reader.op(op.inputs[0])
    if power.type != "Pow":
        return None
    is_constant = (reader.scalar(power.inputs[0]) or 0) > 1
    return power.inputs[1] if is_constant else None


def _is_centred(reader: Reader, op: tf.Operation) -> bool:
    """Returns whether `op` subtracts a reduction of a tensor from the tensor."""
    if op.type != "Sub":
        return False
    mean = reader.op(op.inputs[1])
    while mean.type in op_types(OpFact.RESHAPES):
        mean = reader.op(mean.inputs[0])
    return mean.type in _SUMMED and reader.same(mean.inputs[0], op.inputs[0])


def is_empty_quotient(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x / y` is 0 / 0 where all data are 0, and has no limit there.

    Such are `abs(a - b) / (abs(a) + abs(b))`, `(x - min(x)) / (max(x) - min(x))` and
    `mean(x) / std(x)`.
    """
    if not is_float(x) or reader.constant(y) is not None:
        return False
    # The quotient by `u` has a limit.
    if _exponent(reader, reader.op(x)) is not None:
        return False
    if _is_of_both(reader, x, y):
        return False
    zeros = _Zeros(reader, y)
    return zeros.is_joint and zeros.degree(x) >= 1 - 1e-6


def _is_of_both(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `y` has a difference of two numbers that `x` is made of, too.

    `(b * exp(a) - a * exp(b)) / (b - a)` has a limit where these are equal, which is
    not 0.
    """
    made = {reader.number(each) for each, _ in walk(reader, x, _FORMULA, _DEPTH)}
    steps = (reader.op(each) for each, _ in walk(reader, y, _SCALED, _DEPTH))
    return any(
        op.type == "Sub"
        and not any(_is_reduced(reader, each) for each in op.inputs)
        and made.issuperset(map(reader.number, op.inputs))
        for op in steps
    )


def _is_reduced(reader: Reader, tensor: tf.Tensor) -> bool:
    steps = (reader.op(each).type for each in reshaped(reader, tensor))
    return reader.constant(tensor) is not None or not _SUMMED.isdisjoint(steps)


def is_mean_by_count(reader: Reader, x: tf.Tensor, y: tf.Tensor) -> bool:
    """Returns whether `x / y` divides totals by numbers of elements."""
    return _is_count(reader, y) and _is_total(reader, x, _DEPTH)


def is_sparse_mean(
    reader: Reader, x: tf.Tensor, y: tf.Tensor, depth: int = _DEPTH
) -> bool:
    """Returns whether `x / y` divides a product of a sparse matrix by its row sums."""
    total = reader.op(x)
    if total.type == "Mul" and depth:
        return any(is_sparse_mean(reader, each, y, depth - 1) for each in total.inputs)
    if total.type != "SparseTensorDenseMatMul":
        return False
    for step in reshaped(reader, y):
        degree = reader.op(step)
        is_sum = degree.type == "SparseReduceSum" or (
            degree.type == total.type and reader.scalar(degree.inputs[3]) == 1
        )
        if is_sum:
            pairs = zip(total.inputs[:2], degree.inputs[:2], strict=True)
            return all(reader.same(a, b) for a, b in pairs)
    return False


def _is_total(reader: Reader, tensor: tf.Tensor, depth: int) -> bool:
    op = reader.op(tensor)
    if op.type in _TOTALS:
        return reader.constant(tensor) is None
    is_kept = op.type in _LAYOUTS | {"Neg"}
    return bool(depth and is_kept and _is_total(reader, op.inputs[0], depth - 1))


def _is_count(reader: Reader, tensor: tf.Tensor, depth: int = _DEPTH) -> bool:
    """Returns whether a tensor says how many elements were added up."""
    op = reader.value_source(tensor).op
    if not depth or not op.inputs:
        return False
    if op.type == "Cast":
        return op.inputs[0].dtype.is_integer and _is_whole(reader, op.inputs[0])
    if reader.constant(tensor) is not None:
        return False
    if op.type in _LAYOUTS:
        return _is_count(reader, op.inputs[0], depth - 1)
    if op.type in _HISTOGRAMS:
        # Their weights, if any.
        return op.inputs[2].shape.num_elements() == 0
    counted = None
    if op.type == "ScatterNd":
        counted = op.inputs[1]
    elif op.type == "TensorScatterAdd":
        counted = op.inputs[2] if reader.scalar(op.inputs[0]) == 0 else None
    elif op.type in SEGMENT_SUMS | {"Sum"}:
        counted = op.inputs[0]
    return counted is not None and _is_ones_or_mask(reader, counted)


def _is_whole(reader: Reader, tensor: tf.Tensor) -> bool:
    """Returns whether a tensor of integers is not the size of a static shape."""
    return reader.op(tensor).type not in {"Shape", "Size", "Rank"}


def _is_ones_or_mask(reader: Reader, tensor: tf.Tensor) -> bool:
    op = reader.op(tensor)
    return (
        op.type == "OnesLike"
        or reader.scalar(tensor) == 1
        or (reader.constant(tensor) is None and reader.is_mask(tensor))
    )
