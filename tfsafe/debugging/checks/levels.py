"""Which outputs of a traced function are looked at: one table a level."""

import numpy as np
import tensorflow as tf

from tfsafe.debugging.explain.causes import RULES

# Their faults need an infinity among the inputs, which another operation made.
_OF_INFINITIES = frozenset({
    "Add",
    "AddV2",
    "LogSoftmax",
    "Mul",
    "Softmax",
    "StatefulPartitionedCall",
    "Sub",
})
# Further operations that make a NaN or an infinity of finite numbers.
_SINGULAR = frozenset({
    "Betainc",
    "BesselK0",
    "BesselK1",
    "BesselY0",
    "BesselY1",
    "CTCLoss",
    "CTCLossV2",
    "Cholesky",
    "CholeskyGrad",
    "Digamma",
    "Erfinv",
    "FloorDiv",
    "FloorMod",
    "FusedBatchNormGradV3",
    "FusedBatchNormV3",
    "Igamma",
    "IgammaGradA",
    "Igammac",
    "InvGrad",
    "Lgamma",
    "LogMatrixDeterminant",
    "Lu",
    "MatrixInverse",
    "MatrixLogarithm",
    "MatrixSolve",
    "MatrixSolveLs",
    "MatrixSquareRoot",
    "MatrixTriangularSolve",
    "Mod",
    "Ndtri",
    "Polygamma",
    "Qr",
    "ReciprocalGrad",
    "RsqrtGrad",
    "SelfAdjointEigV2",
    "SoftmaxCrossEntropyWithLogits",
    "SparseSoftmaxCrossEntropyWithLogits",
    "Svd",
    "TridiagonalSolve",
    "TruncateDiv",
    "TruncateMod",
    "Zeta",
})
DOMAIN = _SINGULAR | {
    rule.op
    for rule in RULES
    if rule.fault == "domain" and rule.op not in _OF_INFINITIES
}

# They hand on numbers that were there before.
_MOVES = frozenset({
    "BroadcastTo",
    "CheckNumerics",
    "CheckNumericsV2",
    "Concat",
    "ConcatV2",
    "DynamicStitch",
    "EnsureShape",
    "ExpandDims",
    "Fill",
    "Gather",
    "GatherNd",
    "GatherV2",
    "Identity",
    "IdentityN",
    "MirrorPad",
    "OnesLike",
    "Pack",
    "Pad",
    "PadV2",
    "Placeholder",
    "PlaceholderWithDefault",
    "PreventGradient",
    "Reshape",
    "ReverseV2",
    "Slice",
    "Snapshot",
    "Split",
    "SplitV",
    "Squeeze",
    "StopGradient",
    "StridedSlice",
    "Tile",
    "Transpose",
    "Unpack",
    "ZerosLike",
})
# Their further outputs hold what only the kernel of the gradient reads, if anything.
_FIRST_ALONE = frozenset({
    "FusedBatchNorm",
    "FusedBatchNormV2",
    "FusedBatchNormV3",
})


def outputs_to_check(op: tf.Operation, level: str) -> list[int]:
    """Returns the indices of the outputs of `op` that a level looks at.

    Args:
      op: An operation of a traced function.
      level: `"domain"`, `"full"`, or any other for none.
    """
    if level == "domain":
        is_due = op.type in DOMAIN
    else:
        is_due = level == "full" and op.type not in _MOVES and not _is_finite(op)
    if not is_due:
        return []
    outputs = op.outputs[:1] if op.type in _FIRST_ALONE else op.outputs
    return [
        index
        for index, tensor in enumerate(outputs)
        if tensor.dtype.is_floating or tensor.dtype.is_complex
    ]


def _is_finite(op: tf.Operation) -> bool:
    """Returns whether `op` is a constant without NaN and Inf."""
    if op.type != "Const":
        return False
    value = tf.make_ndarray(op.get_attr("value"))
    if value.dtype.kind not in "fcV":
        return True
    return bool(np.isfinite(value.astype(np.complex128)).all())
