"""Answers names that TensorFlow, Keras or NumPy use for what `tfsafe.ops` has."""

import difflib
from collections.abc import Sequence

import tensorflow as tf

# The name elsewhere, and how to write it with tfsafe.
_OURS = {
    "arccos": "acos(x)",
    "arccosh": "acosh(x)",
    "arcsin": "asin(x)",
    "arctan2": "atan2(y, x)",
    "arctanh": "atanh(x)",
    "amax": "reduce_max(x, axis)",
    "amin": "reduce_min(x, axis)",
    "average": "mean(x, axis, mask=weights)",
    "clip_by_value": "clip(x, low, high)",
    "cumulative_prod": "cumprod(x, axis)",
    "div_no_nan": "divide(x, y)",
    "divide_no_nan": "divide(x, y)",
    "log_sum_exp": "logsumexp(x, axis)",
    "logaddexp": "log_add_exp(x, y)",
    "logcumsumexp": "cumulative_logsumexp(x, axis)",
    "logsigmoid": "log_sigmoid(x)",
    "masked_mean": "mean(x, axis, mask=mask)",
    "max": "reduce_max(x, axis)",
    "min": "reduce_min(x, axis)",
    "power": "pow(x, y)",
    "pseudo_inverse": "pinv(a)",
    "reciprocal_no_nan": "reciprocal(x)",
    "reduce_euclidean_norm": "norm(x, axis=axis)",
    "reduce_logsumexp": "logsumexp(x, axis)",
    "reduce_mean": "mean(x, axis)",
    "reduce_std": "std(x, axis)",
    "reduce_variance": "variance(x, axis)",
    "safe_divide": "divide(x, y)",
    "sigmoid_cross_entropy_with_logits": (
        "binary_crossentropy(y_true, logits, from_logits=True)"
    ),
    "softmax_cross_entropy_with_logits": (
        "categorical_crossentropy(y_true, logits, from_logits=True)"
    ),
    "sparse_softmax_cross_entropy_with_logits": (
        "sparse_categorical_crossentropy(y_true, logits, from_logits=True)"
    ),
    "segment_max": "unsorted_segment_max(data, segment_ids, num_segments)",
    "var": "variance(x, axis)",
    "weighted_mean": "mean(x, axis, mask=weights)",
    "where": "where_apply(condition, fn, x, otherwise)",
}
# Names where a sentence says more than one call.
_NOTES = {
    "lgamma": (
        "Use `tf.math.lgamma(x)`, and `tfsafe.ops.log_pochhammer(x, y)` for the "
        "difference `lgamma(x + y) - lgamma(x)`."
    ),
    "softplus": (
        "Use `tf.nn.softplus(x)`, which is accurate everywhere; its inverse is "
        "`tfsafe.ops.log_expm1(x)`."
    ),
    "where": "To choose between two tensors, use `tf.where(condition, a, b)`.",
}


def unknown_name(name: str, public: Sequence[str]) -> AttributeError:
    """Returns the error for a name that `tfsafe.ops` does not have."""
    hints = [f"Use `tfsafe.ops.{_OURS[name]}`."] if name in _OURS else []
    if name in _NOTES:
        hints.append(_NOTES[name])
    if not hints:
        hints = _other_hints(name, public)
    reason = f"module 'tfsafe.ops' has no attribute {name!r}."
    return AttributeError(" ".join([reason, *hints]), name=name)


def _other_hints(name: str, public: Sequence[str]) -> list[str]:
    similar = difflib.get_close_matches(name, public, cutoff=0.75)
    if similar:
        return [f"Did you mean {' or '.join(map(repr, similar))}?"]
    for prefix, module in (
        ("tf.math", tf.math),
        ("tf.nn", tf.nn),
        ("tf.linalg", tf.linalg),
        ("tf", tf),
    ):
        if not name.startswith("_") and callable(getattr(module, name, None)):
            return [f"Use TensorFlow's own `{prefix}.{name}`."]
    return []
