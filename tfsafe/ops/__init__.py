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
4. A NaN that comes in comes out, unless it stands where the caller masked it.
   Nothing is clipped in secret.

Half precision is computed in float32 and rounded once, at the end.
"""

from tfsafe.ops._crossentropy import (
    binary_crossentropy,
    categorical_crossentropy,
    sparse_categorical_crossentropy,
)
from tfsafe.ops._division import divide
from tfsafe.ops._logarithm import log, log_sigmoid, xlogy
from tfsafe.ops._reduction import masked_mean, norm
from tfsafe.ops._root import sqrt
from tfsafe.ops._softmax import log_softmax, logsumexp

__all__ = [
    "binary_crossentropy",
    "categorical_crossentropy",
    "divide",
    "log",
    "log_sigmoid",
    "log_softmax",
    "logsumexp",
    "masked_mean",
    "norm",
    "sparse_categorical_crossentropy",
    "sqrt",
    "xlogy",
]
