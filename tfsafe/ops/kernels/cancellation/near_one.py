"""Differences from 1, and logarithms, of what is near 1.

Each function takes the written value and its difference from 1, or what that
is made of. Where the value is far from 1 the written form is used, so that ordinary
values keep their digits.
"""

import tensorflow as tf

from tfsafe.ops.kernels import precision, unchanged_values
from tfsafe.ops.kernels.exponential import expm1

# Nearer to 1 a value has fewer digits than its difference from 1.
_NEAR = 0.5


def _is_near(x: tf.Tensor) -> tf.Tensor:
    return tf.abs(x - 1) < _NEAR


def _inside(condition: tf.Tensor, x: tf.Tensor, other: float = 0.0) -> tf.Tensor:
    return tf.where(condition, x, tf.constant(other, x.dtype))


@precision.runs_in_float32
def quotient_minus_one(
    quotient: tf.Tensor, difference: tf.Tensor, divisor: tf.Tensor
) -> tf.Tensor:
    """Computes `a / b - 1` from `a / b`, `a - b` and b."""
    near = _is_near(quotient)
    made = _inside(near, difference) / _inside(near, divisor, 1)
    return tf.where(near, made, quotient - 1)


@precision.runs_in_float32
def product_minus_one(product: tf.Tensor, a: tf.Tensor, b: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + a) * (1 + b) - 1` from the product, a and b."""
    near = _is_near(product) & (tf.abs(a) < _NEAR) & (tf.abs(b) < _NEAR)
    a, b = _inside(near, a), _inside(near, b)
    return tf.where(near, a + b + a * b, product - 1)


@precision.runs_in_float32
def root_minus_one(root: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `sqrt(1 + x) - 1` from the root and x."""
    near = _is_near(root)
    return tf.where(near, _inside(near, x) / (1 + _inside(near, root, 1)), root - 1)


@precision.runs_in_float32
def inverse_root_minus_one(inverse: tf.Tensor, x: tf.Tensor) -> tf.Tensor:
    """Computes `1 / sqrt(1 + x) - 1` from the inverse root and x."""
    near = _is_near(inverse)
    kept = _inside(near, inverse, 1)
    made = -_inside(near, x) * kept * kept / (1 + kept)
    return tf.where(near, made, inverse - 1)


@precision.runs_in_float32
def power_minus_one(power: tf.Tensor, x: tf.Tensor, y: tf.Tensor) -> tf.Tensor:
    """Computes `(1 + x) ** y - 1` from the power, x and y."""
    near = _is_near(power) & (tf.abs(x) < _NEAR)
    log = tf.math.log1p(_inside(near, x))
    return tf.where(near, expm1(_inside(near, y * tf.ones_like(log)) * log), power - 1)


@precision.runs_in_float32
def log_near_one(x: tf.Tensor, less_one: tf.Tensor, log: tf.Tensor) -> tf.Tensor:
    """Computes `log(x)` from x, `x - 1` and the written logarithm."""
    near = _is_near(x)
    return tf.where(near, unchanged_values.log1p(_inside(near, less_one)), log)
