"""Entropy and relative entropy, with `0 * log(0) = 0`."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe import _args
from tfsafe._gradients import custom_gradient, nan_where, unbroadcast
from tfsafe.ops.kernels import precision
from tfsafe.ops.kernels.exponential import exp
from tfsafe.ops.kernels.logarithm import or_nan
from tfsafe.ops.kernels.probability.exponential_sums import log_softmax
from tfsafe.ops.kernels.zeros import (
    log_zero_at_zero,
    quotient_for_gradient,
    quotient_positive,
    times_upstream,
    times_where_nonzero,
)

_Pair = tuple[tf.Tensor, tf.Tensor]
_Axis = Sequence[int] | None


def entropy(
    p: Any,
    axis: int | Sequence[int] | None = -1,
    *,
    from_logits: bool = False,
    keepdims: bool = False,
    name: str = "entropy",
) -> tf.Tensor:
    """Computes the entropy `-sum(p * log(p))` in nats.

    Impossible events are allowed: a probability of 0 and, among logits, `-inf`. They
    add nothing and have gradient 0. Prefer `from_logits=True` where there are logits:
    a probability that was rounded to 1 has lost its part of the entropy.

    Args:
      p: Floating `Tensor` of at least one axis: probabilities, or logits.
      axis: Axis along which the probabilities sum to 1, or several, or None for all.
        That they do is not enforced.
      from_logits: Whether `p` holds logits, to which a softmax is applied.
      keepdims: Whether the reduced axes stay, with size 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `p` and its shape without the reduced axes.

    Raises:
      TypeError: If `p` does not have a floating dtype, or if `axis` is not an
        integer.
      ValueError: If `axis` is out of range or names an axis twice.

    Numerics:
      error          <= 4 ulp of the largest term
      p = 0          term 0, slope 0 (a bounded choice: it is infinite)
      p < 0          value NaN, slope NaN
      p = NaN        value NaN, slope NaN
      logits = -inf  term 0, gradient 0
      all -inf       value 0, gradient 0 (a choice)
      A zero incoming gradient gives zero gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> p = tf.constant([0.0, 0.5, 0.5])
      >>> print(tfsafe.ops.entropy(p).numpy())
      0.6931472
      >>> logits = tf.constant([0.0, 1.0, -float("inf")])
      >>> print(tfsafe.ops.entropy(logits, from_logits=True).numpy())
      0.582203
    """
    with tf.name_scope(name):
        p = _args.float_tensor(p, "p")
        along = _args.axes(axis, p.shape)
        value = precision.in_float32(
            lambda p: tf.reduce_sum(
                _logit_terms(p, along) if from_logits else _entropy_terms(p),
                along,
                keepdims=True,
            ),
            p,
        )
        return value if keepdims else precision.drop(value, along)


@custom_gradient
def _entropy_terms(
    p: tf.Tensor,
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tf.Tensor]]:
    def vjp(upstream: tf.Tensor) -> tf.Tensor:
        slope = -1 - log_zero_at_zero(p)
        return times_upstream(
            upstream, tf.where(tf.equal(p, 0), tf.zeros_like(p), slope)
        )

    return -tf.math.xlogy(p, p), vjp


def _logit_terms(logits: tf.Tensor, axis: _Axis) -> tf.Tensor:
    log_p = log_softmax(logits, axis)
    p = exp(log_p)
    return -times_where_nonzero(p, tf.where(tf.equal(p, 0), tf.zeros_like(p), log_p))


def kl_divergence(
    p: Any,
    q: Any,
    axis: int | Sequence[int] | None = -1,
    *,
    from_logits: bool = False,
    keepdims: bool = False,
    name: str = "kl_divergence",
) -> tf.Tensor:
    """Computes the Kullback-Leibler divergence `sum(p * log(p / q))` in nats.

    Impossible events are allowed: where `p` is 0, nothing is added, whatever `q`.
    Nothing is clipped. Where `p` and `q` are close, their difference is taken before
    the logarithm, which keeps its digits. Prefer `from_logits=True` where there are
    logits: a probability that was rounded to 0 makes the divergence infinite.

    Args:
      p: Floating `Tensor` of at least one axis: the true probabilities.
      q: Floating `Tensor` of the dtype of `p`, of a shape that broadcasts with it:
        the other probabilities, or their logits.
      axis: Axis along which the probabilities sum to 1, or several, or None for all.
        That they do is not enforced.
      from_logits: Whether `q` holds logits, to which a softmax is applied.
      keepdims: Whether the reduced axes stay, with size 1.
      name: Name scope of the operations created.

    Returns:
      `Tensor` with the dtype of `p` and the broadcast shape without the reduced axes.

    Raises:
      TypeError: If `p` or `q` is not floating, if their dtypes differ, or if `axis`
        is not an integer.
      ValueError: If the shapes do not broadcast, or if `axis` is out of range or
        names an axis twice.

    Numerics:
      error           <= 4 ulp of the largest term
      p = 0, q > 0    term 0, slopes 0 (a bounded choice: in p it is -inf)
      p = 0, q = 0    term 0, slopes 0 (a choice)
      p > 0, q = 0    term inf, slopes 0 (a bounded choice: they are infinite)
      p < 0, q > 0    value NaN, slopes NaN and -p / q
      p > 0, q < 0    value NaN, slopes NaN
      p < 0, q < 0    value NaN, slopes NaN
      p = NaN, q > 0  value NaN, slopes NaN
      p = 0, q = NaN  value NaN, slopes NaN and 0
      A logit of -inf is a probability of 0. A zero incoming gradient gives zero
      gradients, whatever the row holds.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> p = tf.constant([1.0, 0.0])
      >>> print(tfsafe.ops.kl_divergence(p, tf.constant([0.5, 0.5])).numpy())
      0.6931472
      >>> logits = tf.constant([0.0, 200.0])
      >>> print(tfsafe.ops.kl_divergence(p, logits, from_logits=True).numpy())
      200.0
    """
    with tf.name_scope(name):
        p, q = _args.float_tensors(p=p, q=q)
        _args.check_broadcast(p=p, q=q)
        along = _args.axes(axis, tf.broadcast_static_shape(p.shape, q.shape))

        def summed(p: tf.Tensor, q: tf.Tensor) -> tf.Tensor:
            if from_logits:
                terms = _logit_divergence_terms(p, log_softmax(q, along))
            else:
                terms = _divergence_terms(p, q)
            return tf.reduce_sum(terms, along, keepdims=True)

        value = precision.in_float32(summed, p, q)
        return value if keepdims else precision.drop(value, along)


@custom_gradient
def _divergence_terms(
    p: tf.Tensor, q: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Pair]]:
    is_impossible = tf.equal(p, 0)
    smaller = tf.minimum(p, q)
    # The larger probability over the smaller one, less 1: exact where they are close.
    # Never divides by p = 0, so that numeric checks find nothing.
    excess = tf.abs(p - q) / tf.where(is_impossible, tf.ones_like(smaller), smaller)
    size = tf.math.log1p(excess + nan_where(smaller < 0, p.dtype))
    logarithm = tf.where(p < q, -size, size)
    value = p * logarithm

    def vjp(upstream: tf.Tensor) -> _Pair:
        in_p = times_upstream(upstream, _slope_in_p(p, q, tf.stop_gradient(logarithm)))
        in_q = -times_upstream(upstream, quotient_positive(p, q, value))
        return unbroadcast(in_p, p), unbroadcast(in_q, q)

    return value, vjp


@custom_gradient
def _slope_in_p(
    p: tf.Tensor, q: tf.Tensor, logarithm: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], tuple[tf.Tensor, tf.Tensor, None]]]:
    at_edge = tf.logical_or(tf.equal(p, 0), tf.equal(q, 0))
    at_edge = tf.logical_and(at_edge, tf.logical_not(tf.math.is_nan(logarithm)))

    def vjp(upstream: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor, None]:
        upstream = tf.where(at_edge, tf.zeros_like(upstream), upstream)
        in_p, in_q = (
            quotient_for_gradient(upstream, p),
            -quotient_for_gradient(upstream, q),
        )
        return unbroadcast(in_p, p), unbroadcast(in_q, q), None

    return tf.where(at_edge, tf.zeros_like(logarithm), 1 + logarithm), vjp


@custom_gradient
def _logit_divergence_terms(
    p: tf.Tensor, log_q: tf.Tensor
) -> tuple[tf.Tensor, Callable[[tf.Tensor], _Pair]]:
    def vjp(upstream: tf.Tensor) -> _Pair:
        at_edge = tf.logical_or(tf.equal(p, 0), tf.math.is_inf(log_q))
        slope = 1 + log_zero_at_zero(p) - log_q
        in_p = times_upstream(upstream, tf.where(at_edge, tf.zeros_like(slope), slope))
        in_q = times_upstream(upstream, -p)
        return unbroadcast(in_p, p), unbroadcast(in_q, log_q)

    value = tf.math.xlogy(p, p) - tf.math.multiply_no_nan(log_q, p)
    return or_nan(value, log_q), vjp
