"""Functions of tensors whose values and gradients stay right at the singular points.

Every function keeps four promises, in eager mode, in `tf.function` and under
`jit_compile=True`, for float16, bfloat16, float32 and float64, and for the gradient
of the gradient as well:

1. A finite input inside the domain gives the right value and gradient to a few ulp,
   whenever the result is representable.
2. Where the incoming gradient is 0, the gradient is 0, however singular the function
   is there. This makes `tf.where` and masks after the function safe.
3. Where the slope does not exist or is infinite, it is the bounded choice that the
   function's `Numerics` block names.
4. A NaN in the input gives NaN in the result, unless the caller masked it.
   Nothing is clipped in secret.

Half precision is computed in float32 and rounded once, at the end.

Two limits are TensorFlow's. For a gradient of a gradient, both tapes must be in one
`tf.function`, or both are called without one. With a function between them the result
is right where the function is smooth, but may be NaN at a singular point; and `pinv`,
`lstsq`, `spectral_function` and `singular_value_function` raise an error. And
`tf.autodiff.ForwardAccumulator` in eager mode goes by the operations inside, so that
the promises hold backwards only.
"""

from typing import TYPE_CHECKING, Any

from tfsafe.ops._names import unknown_name as _unknown_name
from tfsafe.ops.elementwise.division import divide, reciprocal
from tfsafe.ops.elementwise.entropy import entropy, kl_divergence
from tfsafe.ops.elementwise.exponential import expm1, log1mexp, log_cosh, log_expm1
from tfsafe.ops.elementwise.extremum import maximum, minimum, reduce_max, reduce_min
from tfsafe.ops.elementwise.logarithm import (
    log,
    log1p,
    log_sigmoid,
    logit,
    xdivy,
    xlog1py,
    xlogy,
)
from tfsafe.ops.elementwise.plane import angle, atan2, hypot
from tfsafe.ops.elementwise.power import exp, pow, rsqrt, sqrt
from tfsafe.ops.elementwise.special import erfinv, log_erfc, log_pochhammer
from tfsafe.ops.elementwise.trigonometry import (
    acos,
    acosh,
    angle_between,
    asin,
    atanh,
    sinc,
)
from tfsafe.ops.elementwise.where import clip, multiply_no_nan, where_apply
from tfsafe.ops.linalg.determinants import cholesky, det, inv, slogdet
from tfsafe.ops.linalg.pseudoinverse import lstsq, pinv
from tfsafe.ops.linalg.spectral import singular_value_function, spectral_function
from tfsafe.ops.nn.activation import elu, mish, selu, sigmoid, squareplus, tanh
from tfsafe.ops.nn.clipping import clip_by_global_norm, clip_by_norm
from tfsafe.ops.nn.crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from tfsafe.ops.nn.distance import cdist, distance
from tfsafe.ops.nn.focal import (
    binary_focal_crossentropy,
    categorical_focal_crossentropy,
    categorical_generalized_cross_entropy,
)
from tfsafe.ops.nn.images import ssim_multiscale
from tfsafe.ops.nn.normalize import cosine_similarity, l2_normalize, normalize
from tfsafe.ops.nn.softmax import log_softmax, softmax
from tfsafe.ops.reductions.cumulative import cumprod, cumsum, unsorted_segment_max
from tfsafe.ops.reductions.log_sums import (
    cumulative_logsumexp,
    log_add_exp,
    log_sub_exp,
    logsumexp,
)
from tfsafe.ops.reductions.moments import mean, moments, std, variance
from tfsafe.ops.reductions.norm import norm

__all__ = [
    "acos",
    "acosh",
    "angle",
    "angle_between",
    "asin",
    "atan2",
    "atanh",
    "binary_crossentropy",
    "binary_focal_crossentropy",
    "categorical_crossentropy",
    "categorical_focal_crossentropy",
    "categorical_generalized_cross_entropy",
    "cdist",
    "cholesky",
    "clip",
    "clip_by_global_norm",
    "clip_by_norm",
    "cosine_similarity",
    "cumprod",
    "cumsum",
    "cumulative_logsumexp",
    "det",
    "distance",
    "divide",
    "elu",
    "entropy",
    "erfinv",
    "exp",
    "expm1",
    "hypot",
    "inv",
    "kl_divergence",
    "l2_normalize",
    "log",
    "log1mexp",
    "log1p",
    "log_add_exp",
    "log_cosh",
    "log_erfc",
    "log_expm1",
    "log_pochhammer",
    "log_sigmoid",
    "log_softmax",
    "log_sub_exp",
    "logit",
    "logsumexp",
    "lstsq",
    "maximum",
    "mean",
    "minimum",
    "mish",
    "moments",
    "multiply_no_nan",
    "norm",
    "normalize",
    "pinv",
    "pow",
    "reciprocal",
    "reduce_max",
    "reduce_min",
    "rsqrt",
    "selu",
    "sigmoid",
    "sinc",
    "singular_value_function",
    "slogdet",
    "softmax",
    "sparse_categorical_crossentropy",
    "spectral_function",
    "sqrt",
    "squareplus",
    "ssim_multiscale",
    "std",
    "tanh",
    "unsorted_segment_max",
    "variance",
    "where_apply",
    "xdivy",
    "xlog1py",
    "xlogy",
]

if not TYPE_CHECKING:
    # Hidden from type checkers, which are to report a misspelled name.
    def __getattr__(name: str) -> Any:
        raise _unknown_name(name, __all__)
