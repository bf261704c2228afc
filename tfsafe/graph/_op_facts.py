"""Facts about types of operations: one table, one row a type.

Sets of types are derived from it by `op_types`. To teach every feature about another
type, add one row.
"""

import enum
import functools
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple


class OpFact(enum.Flag):
    """What is true of a type of operations."""

    # Element i of the output depends on the elements i of the inputs alone.
    ELEMENTWISE = enum.auto()
    # Takes one tensor, elementwise, and has a slope that depends on it.
    CURVED = enum.auto()
    # Takes one tensor, is 0 at 0, and has a slope there.
    VANISHES = enum.auto()
    # Takes one tensor; the output has its shape.
    KEEPS_SHAPE = enum.auto()
    COMMUTES = enum.auto()
    ADDS = enum.auto()
    # Adds up the rows of its first input that have the same id.
    ADDS_SEGMENTS = enum.auto()
    DIVIDES = enum.auto()
    INVERTS = enum.auto()
    # Grows as an exponential does, and overflows for moderate arguments.
    EXPONENTIAL = enum.auto()
    # Infinite where a probability is 0.
    LOGARITHM = enum.auto()
    MULTIPLIES_MATRICES = enum.auto()
    REDUCES = enum.auto()

    # Returns its first input, with the same gradient.
    COPIES = enum.auto()
    # Returns its inputs; when a function is replayed, there is nothing to run.
    RETURNS_INPUT = enum.auto()
    # Moves elements of its first input, drops or repeats some, changes none.
    MOVES = enum.auto()
    # Moves no element: only the sizes of the axes change.
    RESHAPES = enum.auto()
    # Selects some elements of its first input.
    PICKS = enum.auto()
    # Every number in the output is a number of an input, or a constant.
    ADDS_NO_NUMBER = enum.auto()
    # Row i of the output depends on the rows i of the inputs alone.
    BY_ROW = enum.auto()
    # Its outputs after the first are only for the kernel of its gradient.
    ONE_RESULT = enum.auto()

    # On constants it is worth computing while a function is read.
    FOLDS = enum.auto()
    # Makes NaN or Inf of some finite inputs; `checks="domain"` checks it.
    SINGULAR = enum.auto()
    # A real output is finite where the inputs are.
    STAYS_FINITE = enum.auto()
    # An elementwise function with an infinite value or slope somewhere.
    POLE = enum.auto()
    # Ignores elements of some inputs, which then get a zero gradient.
    DROPS = enum.auto()
    # Its output was chosen to be finite.
    CLEANS = enum.auto()
    TESTS_FINITE = enum.auto()
    COMPARES = enum.auto()
    # Combines or converts truth values.
    LOGIC = enum.auto()

    # Draws from a random state of the kernel.
    DRAWS = enum.auto()
    # Returns the next element of a dataset.
    NEXT_ELEMENT = enum.auto()
    # Leaves a variable that it takes unchanged.
    ONLY_READS = enum.auto()
    # Takes a variable, but does not depend on its value.
    IGNORES_VALUE = enum.auto()
    # Stateful to TensorFlow, but only computes a value.
    NO_EFFECT = enum.auto()
    # Done once already, and not to be done by a replay.
    NOT_REPLAYED = enum.auto()
    LOOP = enum.auto()
    BRANCH = enum.auto()
    CASE = enum.auto()
    PLAIN_CALL = enum.auto()


class OpFacts(NamedTuple):
    """One row of the table.

    Attributes:
      facts: What is true of the type.
      bounds: The lowest and the highest value of the output, NaN aside.
      rising: For a function that never falls: the function, of numbers.
    """

    facts: OpFact
    bounds: tuple[float, float] | None = None
    rising: Callable[[float], float] | None = None


def _exp(x: float) -> float:
    return math.exp(x) if x < 700 else math.inf


def _relu(x: float) -> float:
    return max(x, 0.0)


def _sqrt(x: float) -> float:
    return math.sqrt(max(x, 0.0))


_INF = math.inf
_Op, F = OpFacts, OpFact
_CURVE = F.ELEMENTWISE | F.CURVED | F.KEEPS_SHAPE
_POLE = _CURVE | F.SINGULAR | F.POLE
OP_FACTS: Mapping[str, OpFacts] = {
    "Abs": _Op(_CURVE | F.FOLDS | F.STAYS_FINITE, bounds=(0.0, _INF)),
    "Acos": _Op(_POLE, bounds=(0.0, 4.0)),
    "Acosh": _Op(_POLE),
    "Add": _Op(F.ELEMENTWISE | F.COMMUTES | F.ADDS | F.FOLDS),
    "AddN": _Op(F.ADDS | F.BY_ROW),
    "AddV2": _Op(F.ELEMENTWISE | F.COMMUTES | F.ADDS | F.FOLDS),
    "Asin": _Op(_POLE | F.VANISHES),
    "Asinh": _Op(_CURVE | F.VANISHES),
    "Assert": _Op(F.NOT_REPLAYED),
    "AssertNextDataset": _Op(F.NOT_REPLAYED),
    "Atan": _Op(_CURVE | F.VANISHES | F.STAYS_FINITE),
    "Atan2": _Op(F.ELEMENTWISE),
    "Atanh": _Op(_POLE | F.VANISHES),
    "AvgPool": _Op(F.BY_ROW),
    "BatchMatMul": _Op(F.MULTIPLIES_MATRICES),
    "BatchMatMulV2": _Op(F.MULTIPLIES_MATRICES),
    "BatchMatMulV3": _Op(F.MULTIPLIES_MATRICES),
    "BesselK0": _Op(F.SINGULAR),
    "BesselK1": _Op(F.SINGULAR),
    "BesselY0": _Op(F.SINGULAR),
    "BesselY1": _Op(F.SINGULAR),
    "Betainc": _Op(F.SINGULAR),
    "BiasAdd": _Op(F.BY_ROW),
    "BroadcastTo": _Op(F.MOVES | F.ADDS_NO_NUMBER | F.FOLDS | F.BY_ROW),
    "CTCLoss": _Op(F.SINGULAR),
    "CTCLossV2": _Op(F.SINGULAR),
    "Case": _Op(F.CASE),
    "Cast": _Op(F.ELEMENTWISE | F.FOLDS | F.LOGIC),
    "CheckNumerics": _Op(F.RETURNS_INPUT | F.ADDS_NO_NUMBER),
    "CheckNumericsV2": _Op(F.RETURNS_INPUT | F.ADDS_NO_NUMBER),
    "Cholesky": _Op(F.SINGULAR),
    "CholeskyGrad": _Op(F.SINGULAR),
    "ClipByValue": _Op(F.DROPS | F.STAYS_FINITE),
    "Concat": _Op(F.ADDS_NO_NUMBER),
    "ConcatV2": _Op(F.ADDS_NO_NUMBER | F.FOLDS | F.BY_ROW),
    "Conv2D": _Op(F.BY_ROW),
    "Cos": _Op(_CURVE | F.FOLDS | F.STAYS_FINITE, bounds=(-1.0, 1.0)),
    "Cosh": _Op(_CURVE | F.EXPONENTIAL, bounds=(1.0, _INF)),
    "Digamma": _Op(_POLE),
    "Div": _Op(F.ELEMENTWISE | F.DIVIDES | F.FOLDS | F.SINGULAR | F.POLE),
    "DivNoNan": _Op(F.ELEMENTWISE | F.CLEANS),
    "DynamicPartition": _Op(F.DROPS),
    "DynamicStitch": _Op(F.ADDS_NO_NUMBER),
    "Elu": _Op(_CURVE | F.STAYS_FINITE, bounds=(-1.0, _INF)),
    "EnsureShape": _Op(F.COPIES | F.ADDS_NO_NUMBER),
    "Equal": _Op(F.COMPARES),
    "Erf": _Op(_CURVE | F.VANISHES, bounds=(-1.0, 1.0)),
    "Erfc": _Op(_CURVE | F.STAYS_FINITE, bounds=(0.0, 2.0)),
    "Erfinv": _Op(_POLE),
    "EuclideanNorm": _Op(F.REDUCES),
    "Exp": _Op(_CURVE | F.EXPONENTIAL | F.FOLDS, bounds=(0.0, _INF), rising=_exp),
    "ExpandDims": _Op(F.RESHAPES | F.MOVES | F.ADDS_NO_NUMBER | F.FOLDS | F.BY_ROW),
    "Expm1": _Op(_CURVE | F.VANISHES | F.EXPONENTIAL | F.FOLDS, bounds=(-1.0, _INF)),
    "Fill": _Op(F.ADDS_NO_NUMBER | F.FOLDS),
    "FloorDiv": _Op(F.ELEMENTWISE | F.FOLDS | F.SINGULAR),
    "FloorMod": _Op(F.ELEMENTWISE | F.SINGULAR),
    "FusedBatchNorm": _Op(F.ONE_RESULT),
    "FusedBatchNormGradV3": _Op(F.SINGULAR),
    "FusedBatchNormV2": _Op(F.ONE_RESULT),
    "FusedBatchNormV3": _Op(F.SINGULAR | F.ONE_RESULT),
    "Gather": _Op(F.ADDS_NO_NUMBER),
    "GatherNd": _Op(F.MOVES | F.PICKS | F.ADDS_NO_NUMBER | F.DROPS),
    "GatherV2": _Op(F.MOVES | F.PICKS | F.ADDS_NO_NUMBER | F.FOLDS | F.DROPS),
    "Greater": _Op(F.COMPARES),
    "GreaterEqual": _Op(F.COMPARES | F.FOLDS),
    "Identity": _Op(
        F.COPIES
        | F.RETURNS_INPUT
        | F.ADDS_NO_NUMBER
        | F.LOGIC
        | F.BY_ROW
        | F.ONLY_READS
    ),
    "IdentityN": _Op(F.RETURNS_INPUT | F.ADDS_NO_NUMBER),
    "If": _Op(F.BRANCH),
    "Igamma": _Op(F.SINGULAR),
    "IgammaGradA": _Op(F.SINGULAR),
    "Igammac": _Op(F.SINGULAR),
    "Inv": _Op(_POLE | F.INVERTS),
    "InvGrad": _Op(F.ELEMENTWISE | F.SINGULAR),
    "IsFinite": _Op(F.TESTS_FINITE),
    "IsInf": _Op(F.TESTS_FINITE),
    "IsNan": _Op(F.TESTS_FINITE),
    "IteratorGetNext": _Op(F.NEXT_ELEMENT),
    "IteratorGetNextSync": _Op(F.NEXT_ELEMENT),
    "LeakyRelu": _Op(F.ELEMENTWISE | F.KEEPS_SHAPE),
    "Less": _Op(F.COMPARES),
    "LessEqual": _Op(F.COMPARES),
    "Lgamma": _Op(_POLE),
    "Log": _Op(_POLE | F.LOGARITHM | F.FOLDS),
    "Log1p": _Op(_POLE | F.VANISHES | F.LOGARITHM | F.FOLDS),
    "LogMatrixDeterminant": _Op(F.SINGULAR),
    "LogSoftmax": _Op(F.KEEPS_SHAPE | F.LOGARITHM | F.BY_ROW, bounds=(-_INF, 0.0)),
    "LogicalAnd": _Op(F.LOGIC),
    "LogicalNot": _Op(F.LOGIC),
    "LogicalOr": _Op(F.LOGIC),
    "Lu": _Op(F.SINGULAR),
    "MatMul": _Op(F.MULTIPLIES_MATRICES),
    "MatrixBandPart": _Op(F.ADDS_NO_NUMBER | F.FOLDS),
    "MatrixDiagPartV3": _Op(F.PICKS),
    "MatrixDiagV3": _Op(F.ADDS_NO_NUMBER | F.FOLDS),
    "MatrixInverse": _Op(F.SINGULAR),
    "MatrixLogarithm": _Op(F.SINGULAR),
    "MatrixSetDiagV3": _Op(F.ADDS_NO_NUMBER | F.FOLDS),
    "MatrixSolve": _Op(F.SINGULAR),
    "MatrixSolveLs": _Op(F.SINGULAR),
    "MatrixSquareRoot": _Op(F.SINGULAR),
    "MatrixTriangularSolve": _Op(F.SINGULAR),
    "Max": _Op(F.SINGULAR | F.DROPS | F.REDUCES),
    "MaxPool": _Op(F.BY_ROW),
    "Maximum": _Op(F.ELEMENTWISE | F.COMMUTES | F.FOLDS | F.DROPS | F.STAYS_FINITE),
    "Mean": _Op(F.SINGULAR | F.REDUCES),
    "Min": _Op(F.SINGULAR | F.DROPS | F.REDUCES),
    "Minimum": _Op(F.ELEMENTWISE | F.COMMUTES | F.FOLDS | F.DROPS | F.STAYS_FINITE),
    "MirrorPad": _Op(F.ADDS_NO_NUMBER),
    "Mod": _Op(F.ELEMENTWISE | F.SINGULAR),
    "Mul": _Op(F.ELEMENTWISE | F.COMMUTES | F.FOLDS),
    "MulNoNan": _Op(F.ELEMENTWISE | F.DROPS | F.CLEANS),
    "Multinomial": _Op(F.DRAWS),
    "Ndtri": _Op(_POLE),
    "Neg": _Op(F.ELEMENTWISE | F.KEEPS_SHAPE | F.FOLDS | F.STAYS_FINITE),
    "NoOp": _Op(F.NOT_REPLAYED),
    "NotEqual": _Op(F.COMPARES),
    "OnesLike": _Op(F.ADDS_NO_NUMBER | F.FOLDS, bounds=(1.0, 1.0)),
    "Pack": _Op(F.ADDS_NO_NUMBER | F.FOLDS),
    "Pad": _Op(F.ADDS_NO_NUMBER),
    "PadV2": _Op(F.ADDS_NO_NUMBER),
    "ParameterizedTruncatedNormal": _Op(F.DRAWS),
    "PartitionedCall": _Op(F.PLAIN_CALL),
    "Placeholder": _Op(F.ADDS_NO_NUMBER | F.NO_EFFECT),
    "PlaceholderWithDefault": _Op(F.ADDS_NO_NUMBER | F.NO_EFFECT),
    "Polygamma": _Op(F.SINGULAR),
    "Pow": _Op(F.ELEMENTWISE | F.FOLDS | F.SINGULAR | F.POLE),
    "PreventGradient": _Op(F.COPIES | F.RETURNS_INPUT | F.ADDS_NO_NUMBER),
    "Print": _Op(F.NOT_REPLAYED),
    "PrintV2": _Op(F.NOT_REPLAYED),
    "Prod": _Op(F.FOLDS | F.REDUCES),
    "Qr": _Op(F.SINGULAR),
    "RandomGamma": _Op(F.DRAWS),
    "RandomPoissonV2": _Op(F.DRAWS),
    "RandomShuffle": _Op(F.DRAWS),
    "RandomStandardNormal": _Op(F.DRAWS),
    "RandomUniform": _Op(F.DRAWS, bounds=(0.0, 1.0)),
    "RandomUniformInt": _Op(F.DRAWS),
    "Range": _Op(F.FOLDS),
    "ReadVariableOp": _Op(F.ONLY_READS),
    "RealDiv": _Op(F.ELEMENTWISE | F.DIVIDES | F.FOLDS | F.SINGULAR | F.POLE),
    "Reciprocal": _Op(_POLE | F.INVERTS | F.FOLDS),
    "ReciprocalGrad": _Op(F.ELEMENTWISE | F.SINGULAR),
    "Relu": _Op(
        F.ELEMENTWISE | F.KEEPS_SHAPE | F.DROPS | F.STAYS_FINITE,
        bounds=(0.0, _INF),
        rising=_relu,
    ),
    "Relu6": _Op(
        F.ELEMENTWISE | F.KEEPS_SHAPE | F.DROPS | F.STAYS_FINITE, bounds=(0.0, 6.0)
    ),
    "ReluGrad": _Op(F.ELEMENTWISE | F.STAYS_FINITE),
    "Reshape": _Op(F.RESHAPES | F.MOVES | F.ADDS_NO_NUMBER | F.FOLDS),
    "ResourceGather": _Op(F.ONLY_READS | F.NO_EFFECT),
    "ResourceGatherNd": _Op(F.ONLY_READS | F.NO_EFFECT),
    "ReverseV2": _Op(F.MOVES | F.ADDS_NO_NUMBER),
    "Roll": _Op(F.MOVES | F.ADDS_NO_NUMBER),
    "Rsqrt": _Op(_POLE | F.FOLDS, bounds=(0.0, _INF)),
    "RsqrtGrad": _Op(F.ELEMENTWISE | F.SINGULAR),
    "SegmentSum": _Op(F.ADDS_SEGMENTS),
    "SegmentSumV2": _Op(F.ADDS_SEGMENTS),
    "Select": _Op(F.ELEMENTWISE | F.DROPS | F.CLEANS),
    "SelectV2": _Op(F.ELEMENTWISE | F.DROPS | F.CLEANS),
    "SelfAdjointEigV2": _Op(F.SINGULAR),
    "Selu": _Op(_CURVE),
    "Sigmoid": _Op(_CURVE | F.STAYS_FINITE, bounds=(0.0, 1.0)),
    "SigmoidGrad": _Op(F.ELEMENTWISE | F.STAYS_FINITE),
    "Sign": _Op(F.ELEMENTWISE | F.KEEPS_SHAPE | F.STAYS_FINITE, bounds=(-1.0, 1.0)),
    "Sin": _Op(_CURVE | F.VANISHES | F.FOLDS | F.STAYS_FINITE, bounds=(-1.0, 1.0)),
    "Sinh": _Op(_CURVE | F.VANISHES | F.EXPONENTIAL),
    "Slice": _Op(F.MOVES | F.ADDS_NO_NUMBER | F.FOLDS | F.DROPS),
    "Snapshot": _Op(F.COPIES | F.ADDS_NO_NUMBER),
    "Softmax": _Op(F.KEEPS_SHAPE | F.BY_ROW | F.STAYS_FINITE, bounds=(0.0, 1.0)),
    "SoftmaxCrossEntropyWithLogits": _Op(F.SINGULAR | F.BY_ROW),
    "Softplus": _Op(_CURVE, bounds=(0.0, _INF)),
    "Softsign": _Op(_CURVE),
    "SparseSoftmaxCrossEntropyWithLogits": _Op(F.SINGULAR | F.BY_ROW),
    "Split": _Op(F.ADDS_NO_NUMBER),
    "SplitV": _Op(F.ADDS_NO_NUMBER),
    "Sqrt": _Op(_POLE | F.FOLDS, bounds=(0.0, _INF), rising=_sqrt),
    "SqrtGrad": _Op(F.ELEMENTWISE | F.SINGULAR),
    "Square": _Op(_CURVE | F.FOLDS, bounds=(0.0, _INF)),
    "SquaredDifference": _Op(F.ELEMENTWISE, bounds=(0.0, _INF)),
    "Squeeze": _Op(F.RESHAPES | F.MOVES | F.ADDS_NO_NUMBER | F.FOLDS | F.BY_ROW),
    "StatefulPartitionedCall": _Op(F.PLAIN_CALL),
    "StatelessCase": _Op(F.CASE),
    "StatelessIf": _Op(F.BRANCH),
    "StatelessWhile": _Op(F.LOOP),
    "StopGradient": _Op(F.RETURNS_INPUT | F.ADDS_NO_NUMBER),
    "StridedSlice": _Op(F.MOVES | F.PICKS | F.ADDS_NO_NUMBER | F.FOLDS | F.DROPS),
    "Sub": _Op(F.ELEMENTWISE | F.FOLDS),
    "Sum": _Op(F.FOLDS | F.REDUCES),
    "Svd": _Op(F.SINGULAR),
    "Tan": _Op(_CURVE | F.VANISHES | F.POLE),
    "Tanh": _Op(_CURVE | F.VANISHES | F.FOLDS | F.STAYS_FINITE, bounds=(-1.0, 1.0)),
    "TanhGrad": _Op(F.ELEMENTWISE | F.STAYS_FINITE),
    "Tile": _Op(F.MOVES | F.ADDS_NO_NUMBER | F.BY_ROW),
    "TopKV2": _Op(F.DROPS),
    "Transpose": _Op(F.MOVES | F.ADDS_NO_NUMBER),
    "TridiagonalSolve": _Op(F.SINGULAR),
    "TruncateDiv": _Op(F.SINGULAR),
    "TruncateMod": _Op(F.SINGULAR),
    "TruncatedNormal": _Op(F.DRAWS),
    "Unpack": _Op(F.ADDS_NO_NUMBER),
    "UnsortedSegmentSum": _Op(F.ADDS_SEGMENTS),
    "VarIsInitializedOp": _Op(F.ONLY_READS | F.NO_EFFECT | F.IGNORES_VALUE),
    "VariableShape": _Op(F.ONLY_READS | F.NO_EFFECT | F.IGNORES_VALUE),
    "While": _Op(F.LOOP),
    "Xdivy": _Op(F.ELEMENTWISE | F.SINGULAR | F.POLE),
    "Xlog1py": _Op(F.ELEMENTWISE | F.SINGULAR | F.POLE),
    "Xlogy": _Op(F.ELEMENTWISE | F.SINGULAR | F.POLE),
    "ZerosLike": _Op(F.ADDS_NO_NUMBER | F.FOLDS, bounds=(0.0, 0.0)),
    "Zeta": _Op(F.SINGULAR),
}


@functools.cache
def op_types(*facts: OpFact) -> frozenset[str]:
    """Returns the types of operations that have at least one of the facts."""
    wanted = functools.reduce(OpFact.__or__, facts)
    return frozenset(name for name, row in OP_FACTS.items() if row.facts & wanted)


ADDITIONS = op_types(OpFact.ADDS)
SUMS = ADDITIONS | {"Sub"}
DIVISIONS = op_types(OpFact.DIVIDES)
RECIPROCALS = op_types(OpFact.INVERTS)
MATRIX_PRODUCTS = op_types(OpFact.MULTIPLIES_MATRICES)
SEGMENT_SUMS = op_types(OpFact.ADDS_SEGMENTS)
