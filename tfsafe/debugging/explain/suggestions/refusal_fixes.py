"""Holds the fixes for what TensorFlow refuses with an error instead of a NaN."""

from tfsafe.debugging.explain.suggestions.fix import Fix

_LABELS = (
    "number the classes from 0, as `labels - 1` does if they begin at 1, or end the "
    "model in more classes: one more than the largest label."
)
_ONE_CLASS = (
    "a single output goes with binary_crossentropy, for labels of 0 and 1. For "
    "sparse_categorical_crossentropy end the model in as many outputs as there are "
    "classes, one more than the largest label."
)
_ROWS = (
    "give the table a row for each number, one more than the largest: "
    "keras.layers.Embedding(input_dim=int(ids.max()) + 1, ...) with the ids of all "
    "data, those of the test too; or give unknown ids one row, as "
    "tf.where(ids < input_dim, ids, 0) does."
)
_FROM_ZERO = (
    "number the rows from 0. A negative one that means nothing, as of padding, "
    "needs a row of its own: ids + 1, and one row more."
)
_BOUNDS = (
    "positions count from 0, up to one less than the size. Make what is indexed one "
    "larger than the largest of them, or bound them: tf.clip_by_value(i, 0, size - 1)."
)
_PINV = (
    "is the inverse where there is one, and the pseudoinverse of a singular matrix. "
    "For a regularised one, add to the diagonal: {0} + {shift} * "
    "tf.eye(tf.shape({0})[-1])."
)
_LSTSQ = (
    "is the same solution where there is one, and the shortest of the least squares "
    "for a singular matrix. For a regularised one, add to the diagonal: {0} + {shift} "
    "* tf.eye(tf.shape({0})[-1])."
)
_DIAGONAL = (
    "add to the diagonal of the matrix: {0} + {shift} * tf.eye(tf.shape({0})[-1])."
)
_INTEGER = (
    "keep the integer that is divided by at 1 or more, as tf.maximum(count, 1) does."
)
_NO_NAN = (
    "look for what makes NaN before, in the data for one: "
    'tfsafe.data.check_finite(data, policy="report").'
)
_NUMBER = (
    "give such texts a number before: tf.where(text == 'TEXT', 'nan', text) has them "
    "read as NaN, which tf.where(tf.math.is_nan(x), 0.0, x) fills in."
)
_CSV = (
    "give the text a meaning: na_value='TEXT' of decode_csv has it read as the default "
    "of its column. The first line of a file may be its header: Dataset.skip(1)."
)
_DEFAULT = (
    "give the column a default value, as record_defaults=[0.0] does: an empty list "
    "says that it is never empty."
)
_CATEGORIES = (
    "number the classes from 0, as `labels - 1` does if they begin at 1, or give "
    "num_classes=int(labels.max()) + 1."
)
_NUMPY = (
    "np.linalg.pinv(x) and np.linalg.lstsq(a, b) take singular matrices; or add to the "
    "diagonal: x + 1e-3 * np.eye(len(x))."
)
_CHECKED = (
    "remove what makes it. `tf.debugging.check_numerics` names no operation; `tfsafe "
    "run` without that check does."
)
_SOFTMAX = "SparseSoftmaxCrossEntropyWithLogits"
OF_REFUSALS = [
    Fix(_SOFTMAX, "", _ONE_CLASS, fault="one class"),
    Fix(_SOFTMAX, "", _LABELS, fault="label"),
    Fix("GatherV2", "", _FROM_ZERO, fault="negative index"),
    Fix("ResourceGather", "", _FROM_ZERO, fault="negative index"),
    Fix("GatherV2", "", _ROWS, fault="index"),
    Fix("ResourceGather", "", _ROWS, fault="index"),
    *(
        Fix(op, "", _BOUNDS, fault=fault)
        for op in (
            "DenseBincount",
            "DynamicPartition",
            "GatherNd",
            "ScatterNd",
            "SparseToDense",
            "TensorScatterAdd",
            "TensorScatterUpdate",
            "UnsortedSegmentSum",
        )
        for fault in ("index", "negative index")
    ),
    Fix("MatrixInverse", "tfsafe.ops.pinv({0})", _PINV, fault="singular"),
    Fix("MatrixSolve", "tfsafe.ops.lstsq({0}, {1})", _LSTSQ, fault="singular"),
    *(
        Fix(op, "", _DIAGONAL, fault="singular")
        for op in ("BandedTriangularSolve", "Lu")
    ),
    Fix("CheckNumerics", "", _CHECKED, fault="nan"),
    *(
        Fix(op, "", _NO_NAN, fault="nan")
        for op in (
            *(_SOFTMAX, "GatherV2", "ResourceGather", "UnsortedSegmentSum"),
            *("MatrixInverse", "MatrixSolve", "Lu", "Eig", "SelfAdjointEigV2"),
        )
    ),
    Fix("to_categorical", "", _CATEGORIES, fault="label"),
    Fix("np.linalg", "", _NUMPY, fault="singular"),
    Fix("FloorDiv", "", _INTEGER, fault=""),
    Fix("FloorMod", "", _INTEGER, fault=""),
    Fix("StringToNumber", "", _NUMBER, fault="no number"),
    Fix("DecodeCSV", "", _CSV, fault="no number"),
    Fix("DecodeCSV", "", _DEFAULT, fault="no field"),
]
