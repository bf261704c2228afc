"""What holds for all functions of `tfsafe.ops` that act on one or two tensors."""

import inspect
import pathlib

import numpy as np
import pytest
import tensorflow as tf

from tests.ops.edges import assert_rounded, documented
from tests.support import modes
from tests.support.oracle import assert_close
from tfsafe import ops

# A function of one tensor of shape [3, 4] for each op, whose rows are independent.
ROWS = {
    "acos": lambda x: ops.acos(x / 12),
    "acosh": lambda x: ops.acosh(1 + x),
    "angle_between": lambda x: ops.angle_between(x, x[:, ::-1]),
    "asin": lambda x: ops.asin(x / 12),
    "atan2": lambda x: ops.atan2(x[:, :1], x),
    "atanh": lambda x: ops.atanh(x / 12),
    "clip": lambda x: ops.clip(x, x[:, :1], 5.0),
    "elu": lambda x: ops.elu(x - 4),
    "exp": ops.exp,
    "hypot": lambda x: ops.hypot(x[:, :1], x),
    "maximum": lambda x: ops.maximum(x[:, :1], x),
    "minimum": lambda x: ops.minimum(x[:, :1], x),
    "mish": lambda x: ops.mish(x - 4),
    "multiply_no_nan": lambda x: ops.multiply_no_nan(x[:, :1], x),
    "pow": lambda x: ops.pow(x[:, :1], x / 4),
    "reciprocal": ops.reciprocal,
    "reduce_max": lambda x: ops.reduce_max(x, axis=-1),
    "reduce_min": lambda x: ops.reduce_min(x, axis=-1),
    "rsqrt": ops.rsqrt,
    "selu": lambda x: ops.selu(x - 4),
    "sigmoid": ops.sigmoid,
    "sinc": ops.sinc,
    "squareplus": lambda x: ops.squareplus(x - 0.5),
    "tanh": ops.tanh,
    "clip_by_norm": lambda x: ops.clip_by_norm(x, 6.0, axes=-1),
    "cosine_similarity": lambda x: ops.cosine_similarity(x, x[:, ::-1]),
    "cumprod": lambda x: ops.cumprod(x, axis=-1),
    "cumsum": lambda x: ops.cumsum(x, axis=-1),
    "distance": lambda x: ops.distance(x, x[:, ::-1]),
    "l2_normalize": lambda x: ops.l2_normalize(x, axis=-1),
    "mean": lambda x: ops.mean(x, axis=-1, mask=x > 1),
    "moments": lambda x: ops.moments(x, axes=-1, mask=x > 1)[1],
    "normalize": lambda x: ops.normalize(x, ord=1, axis=-1)[0],
    # Weighted: the sum of the probabilities is 1 for any logits.
    "softmax": lambda x: ops.softmax(x) * tf.cast([1, 2, 4, 8], x.dtype),
    "std": lambda x: ops.std(x, axis=-1),
    "variance": lambda x: ops.variance(x, axis=-1),
    "divide": lambda x: ops.divide(x[:, :1], x),
    "cumulative_logsumexp": lambda x: ops.cumulative_logsumexp(x, axis=-1),
    "entropy": ops.entropy,
    "erfinv": lambda x: ops.erfinv(x / 16),
    "expm1": ops.expm1,
    "kl_divergence": lambda x: ops.kl_divergence(x, x[:, ::-1] + 1),
    "log": ops.log,
    "log1mexp": lambda x: ops.log1mexp(-x - 1),
    "log1p": ops.log1p,
    "log_add_exp": lambda x: ops.log_add_exp(x[:, :1], x),
    "log_cosh": ops.log_cosh,
    "log_erfc": ops.log_erfc,
    "log_expm1": lambda x: ops.log_expm1(x + 1),
    "log_pochhammer": lambda x: ops.log_pochhammer(x[:, :1] + 2, x),
    "log_sigmoid": ops.log_sigmoid,
    "log_sub_exp": lambda x: ops.log_sub_exp(x + 1, x),
    "logit": lambda x: ops.logit((x + 1) / 16),
    "log_softmax": ops.log_softmax,
    "logsumexp": lambda x: ops.logsumexp(x, axis=-1),
    "norm": lambda x: ops.norm(x, axis=-1),
    "sqrt": ops.sqrt,
    "xdivy": lambda x: ops.xdivy(x[:, :1], x + 1),
    "xlog1py": lambda x: ops.xlog1py(x[:, :1], x),
    "xlogy": lambda x: ops.xlogy(x[:, :1], x),
}
# Ops whose rows cannot be such a function, and why. The files named test them.
_LABELS = "its first argument is labels, which are not differentiated alike"
_MATRIX = "it takes square matrices: test_linalg"
EXEMPT = {
    "angle": "it takes complex numbers: test_trigonometry",
    "binary_crossentropy": f"{_LABELS}: test_crossentropy",
    "binary_focal_crossentropy": f"{_LABELS}: test_focal",
    "categorical_crossentropy": f"{_LABELS}: test_crossentropy",
    "categorical_focal_crossentropy": f"{_LABELS}: test_focal",
    "categorical_generalized_cross_entropy": f"{_LABELS}: test_focal",
    "cdist": "it pairs the rows of two tensors: test_normalize",
    "cholesky": _MATRIX,
    "clip_by_global_norm": "it takes a list, and its rows share a norm: test_clipping",
    "det": _MATRIX,
    "inv": _MATRIX,
    "lstsq": "it takes matrices and right-hand sides: test_singular",
    "pinv": "it takes matrices: test_singular",
    "singular_value_function": "it takes matrices and a function: test_spectral",
    "slogdet": _MATRIX,
    "sparse_categorical_crossentropy": f"{_LABELS}: test_crossentropy",
    "spectral_function": "it takes square matrices and a function: test_spectral",
    "ssim_multiscale": "it takes images: test_image",
    "unsorted_segment_max": "its segments join rows: test_cumulative",
    "where_apply": "it takes a function, and any dtype: test_where",
}
# Each op on the whole tensor, of whatever rank.
WHOLE = ROWS | {
    "angle_between": lambda x: ops.angle_between(x, x + 1),
    "atan2": lambda x: ops.atan2(x, x + 1),
    "clip": lambda x: ops.clip(x, 1.0, 5.0),
    "hypot": lambda x: ops.hypot(x, x + 1),
    "maximum": lambda x: ops.maximum(x, 3.0),
    "minimum": lambda x: ops.minimum(x, 3.0),
    "multiply_no_nan": lambda x: ops.multiply_no_nan(x, x + 1),
    "pow": lambda x: ops.pow(x, x + 1),
    "reduce_max": ops.reduce_max,
    "reduce_min": ops.reduce_min,
    "clip_by_norm": lambda x: ops.clip_by_norm(x, 6.0),
    "cosine_similarity": lambda x: ops.cosine_similarity(x, x + 1),
    "distance": lambda x: ops.distance(x, 2 * x),
    "l2_normalize": ops.l2_normalize,
    "mean": lambda x: ops.mean(x, mask=x > 1),
    "moments": lambda x: ops.moments(x)[1],
    "normalize": lambda x: ops.normalize(x, ord=1)[0],
    "softmax": ops.softmax,
    "std": ops.std,
    "variance": ops.variance,
    "divide": lambda x: ops.divide(x, x + 1),
    "logsumexp": ops.logsumexp,
    "norm": ops.norm,
    "cumulative_logsumexp": ops.cumulative_logsumexp,
    "kl_divergence": lambda x: ops.kl_divergence(x, x + 1),
    "log_add_exp": lambda x: ops.log_add_exp(x, 2 * x),
    "log_pochhammer": lambda x: ops.log_pochhammer(x + 1, x),
    "xdivy": lambda x: ops.xdivy(x, x + 1),
    "xlog1py": lambda x: ops.xlog1py(x, x),
    "xlogy": lambda x: ops.xlogy(x, x + 1),
}

every_op = pytest.mark.parametrize("name", list(ROWS))


def _example(dtype=tf.float32):
    # With a 0 in it, the singular point of most ops.
    return tf.constant([[0, 1, 2, 3], [4, 0, 5, 6], [7, 8, 9, 0]], dtype)


def _gradient(function, x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    return tape.gradient(value, x)


def _required(op):
    parameters = inspect.signature(op).parameters.values()
    return [each.name for each in parameters if each.default is each.empty]


def test_every_public_op_is_in_the_tables_or_exempt_with_a_reason():
    assert set(ROWS) == set(WHOLE)
    assert not set(ROWS) & set(EXEMPT)
    assert set(ROWS) | set(EXEMPT) == set(ops.__all__)


@pytest.mark.parametrize("name", list(EXEMPT))
def test_the_reason_of_an_exemption_names_a_file_that_tests_the_op(name):
    file = pathlib.Path(__file__).parent / f"{EXEMPT[name].split(': ')[1]}.py"
    assert f"ops.{name}" in file.read_text()


@pytest.mark.parametrize("name", list(EXEMPT))
def test_the_docstring_of_an_exempt_op_has_every_section(name):
    op = getattr(ops, name)
    for section in ("Args", "Returns", "Raises", "Numerics", "Examples"):
        assert f"\n{section}:\n" in inspect.getdoc(op), section


@every_op
def test_it_keeps_the_dtype_and_the_shape(name, dtype):
    x = _example(dtype)
    value, (slope,) = modes.value_and_gradients(ROWS[name], [x], "graph")
    assert value.dtype == slope.dtype == dtype
    assert slope.shape == x.shape
    assert np.all(np.isfinite(np.asarray(slope, np.float64)))


@every_op
def test_it_takes_a_tensor_of_unknown_rank(name):
    function = WHOLE[name]

    @tf.function(input_signature=[tf.TensorSpec(None, tf.float32)], autograph=False)
    def unknown(x):
        return function(x), _gradient(function, x)

    for x in [_example() + 1, tf.constant([2.0, 3.0]), tf.ones([2, 1, 3])]:
        value, slope = unknown(x)
        assert_rounded(value, function(x))
        # The gradient of a summed `log_softmax` is 0 for equal logits.
        assert_close(slope, _gradient(function, x), scale=1.0)


@every_op
def test_it_takes_a_batch_of_unknown_size(name):
    function = ROWS[name]
    x = _example()

    @tf.function(
        input_signature=[tf.TensorSpec([None, 4], tf.float32)], autograph=False
    )
    def unknown(x):
        return function(x), _gradient(function, x)

    value, slope = unknown(x)
    assert_rounded(value, function(x))
    assert_rounded(slope, _gradient(function, x))


@every_op
def test_an_empty_batch_has_an_empty_result_and_gradient(name, mode):
    x = tf.zeros([0, 4])
    value, (slope,) = modes.value_and_gradients(ROWS[name], [x], mode)
    assert tf.size(value) == 0
    assert slope.shape == [0, 4]


@every_op
def test_vectorized_map_gives_the_values_and_gradients_of_the_batch(name):
    x = _example()

    def row(row):
        with tf.GradientTape() as tape:
            tape.watch(row)
            value = ROWS[name](row[tf.newaxis])[0]
        return value, tape.gradient(value, row)

    values, slopes = tf.vectorized_map(row, x)
    assert_rounded(values, ROWS[name](x))
    assert_rounded(slopes, _gradient(ROWS[name], x))


@every_op
def test_the_jacobian_of_the_jacobian_agrees_with_the_gradients(name):
    x = _example()[:2]
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as inner:
            inner.watch(x)
            value = ROWS[name](x)
        jacobian = inner.jacobian(value, x)
        summed = tf.reduce_sum(jacobian, list(range(value.shape.rank)))
    hessian = outer.jacobian(summed, x, unconnected_gradients="zero")
    # Sums of terms of both signs: compare with the size of these.
    size = tf.reduce_max(tf.abs(jacobian))
    assert_close(summed, _gradient(ROWS[name], x), scale=size)
    second = tf.reduce_sum(hessian, [0, 1])
    # Rows of a Hessian sum to 0 in places: compare with the size of its entries.
    size = tf.reduce_max(tf.abs(hessian))
    truth = modes.second_gradient(ROWS[name], x, "eager")
    assert_close(second, truth, 8, why="sums over a Hessian", scale=size)


@every_op
def test_it_can_be_differentiated_forwards(name):
    x = _example() + 1
    tangent = tf.ones_like(x)
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        value = ROWS[name](x)
    forward = accumulator.jvp(value)
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = ROWS[name](x)
    backward = tf.reduce_sum(tape.jacobian(value, x), [-2, -1])
    assert_close(forward, backward, 8, why="sums over a Jacobian", scale=1.0)


@pytest.fixture
def _every_operation_checked():
    tf.debugging.enable_check_numerics()
    yield
    tf.debugging.disable_check_numerics()


@pytest.mark.usefixtures("_every_operation_checked")
@pytest.mark.parametrize("mode", ["eager", "graph"])
@every_op
def test_no_operation_inside_makes_a_nan_that_does_not_come_out(name, mode):
    # A check of every operation must not point at us where the result is finite.
    x = _example() + 1 if name in {"log", "xlogy"} else _example()

    def both(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            value, (slope,) = modes.value_and_gradients(ROWS[name], [x], "eager")
        return value, slope, outer.gradient(slope, x, unconnected_gradients="zero")

    modes.compile_for(mode, both)(x)


@every_op
def test_its_operations_are_in_a_name_scope(name):
    function = tf.function(WHOLE[name], autograph=False)
    graph = function.get_concrete_function(_example()).graph
    assert any(op.name.startswith(f"{name}/") for op in graph.get_operations())


@every_op
def test_its_name_scope_can_be_chosen(name):
    op = getattr(ops, name)
    args = [_example() for _ in _required(op)]
    function = tf.function(lambda: op(*args, name="mine"), autograph=False)
    graph = function.get_concrete_function().graph
    assert any(op.name.startswith("mine/") for op in graph.get_operations())


@every_op
def test_its_docstring_has_every_section(name):
    op = getattr(ops, name)
    for section in ("Args", "Returns", "Raises", "Numerics", "Examples"):
        assert f"\n{section}:\n" in inspect.getdoc(op), section
    assert documented(op)


@every_op
def test_integers_are_refused_with_a_suggestion(name):
    op = getattr(ops, name)
    names = _required(op)
    args = [tf.constant([1, 2]) for _ in names]
    message = rf"`{names[0]}` must have a floating .*dtype=int32"
    with pytest.raises(TypeError, match=message):
        op(*args)


@pytest.mark.parametrize(
    "name",
    [
        "l2_normalize",
        "log_softmax",
        "logsumexp",
        "mean",
        "norm",
        "normalize",
        "softmax",
        "std",
        "variance",
    ],
)
@pytest.mark.parametrize(
    ("axis", "error", "message"),
    [
        (2, ValueError, r"`axis` is out of range. Received: axis=2 .*\(3, 4\)"),
        ((0, -2), ValueError, r"`axis` names an axis twice. Received: axis=\(0, -2\)"),
        (0.5, TypeError, r"`axis` must be an integer.* Received: axis=0.5"),
    ],
)
def test_a_wrong_axis_is_refused(name, axis, error, message):
    with pytest.raises(error, match=message):
        getattr(ops, name)(_example(), axis=axis)


@pytest.mark.parametrize(
    "op",
    [
        ops.divide,
        ops.hypot,
        ops.maximum,
        ops.minimum,
        ops.multiply_no_nan,
        ops.pow,
        ops.xlogy,
    ],
)
class TestTwoArguments:
    def test_different_dtypes_are_refused(self, op):
        message = r"`x` and `y` must have the same dtype. Received: x: float32, y: flo"
        with pytest.raises(TypeError, match=message):
            op(tf.constant(1.0), tf.constant(1.0, tf.float16))

    def test_shapes_that_do_not_broadcast_are_refused(self, op):
        message = r"`x` and `y` must have shapes that broadcast. Received: x of shape"
        with pytest.raises(ValueError, match=message):
            op(tf.zeros([2, 3]), tf.zeros([2]))

    def test_python_numbers_take_the_dtype_of_the_other_argument(self, op, dtype):
        x = tf.constant([1.0, 2.0], dtype)
        assert op(x, 2).dtype == op(2.0, x).dtype == dtype


@pytest.mark.parametrize(
    ("at_zero", "error", "message"),
    [
        ("0", TypeError, r"`at_zero` must be a number. Received: at_zero='0'"),
        (True, TypeError, r"`at_zero` must be a number. Received: at_zero=True"),
        (1e5, ValueError, r"`at_zero` must fit the dtype .* float16, .* 65504"),
    ],
)
def test_a_wrong_value_at_zero_is_refused(at_zero, error, message):
    x = tf.constant(1.0, tf.float16)
    with pytest.raises(error, match=message):
        ops.divide(x, x, at_zero=at_zero)


def test_a_wrong_empty_value_is_refused():
    with pytest.raises(
        TypeError, match=r"`empty_value` must be a number.* Received: e"
    ):
        ops.mean(tf.zeros([2]), empty_value=None)


@pytest.mark.parametrize(
    ("mask", "error", "message"),
    [
        (tf.ones([3, 4], tf.float16), TypeError, r"`mask` must be boolean.*=float16"),
        (tf.constant("yes"), TypeError, r"`mask` must be boolean.*dtype=string"),
        (tf.ones([3]), ValueError, r"`mask` must .*broadcasts to .*\(3, 4\)"),
        (tf.ones([2, 3, 4]), ValueError, r"`mask` must .*Received: mask of shape"),
        (tf.RaggedTensor.from_row_lengths([1.0], [1]), TypeError, r"`mask` .*dense"),
    ],
)
def test_a_wrong_mask_is_refused(mask, error, message):
    with pytest.raises(error, match=message):
        ops.mean(tf.zeros([3, 4]), mask=mask)
