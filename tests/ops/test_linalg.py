"""Determinants, inverses, factors and pseudoinverses, also of singular matrices."""

import inspect

import numpy as np
import pytest
import tensorflow as tf

from tests.ops import matrices
from tests.ops.edges import INF, NAN, assert_rounded, documented
from tests.support import modes
from tfsafe import ops

_RHS = tf.constant([[1.0, 2.0], [-1.0, 0.5], [3.0, 1.0]], tf.float64)


def _symmetric(x):
    return (x + tf.linalg.matrix_transpose(x)) / 2


# Each op as a function of matrices of shape [..., 3, 3], and what NumPy gives.
OPS = {
    "det": (ops.det, np.linalg.det),
    "slogdet": (lambda x: ops.slogdet(x)[1], lambda x: np.linalg.slogdet(x)[1]),
    "inv": (ops.inv, np.linalg.inv),
    # Of the symmetric part: finite differences move one element at a time.
    "cholesky": (lambda x: ops.cholesky(_symmetric(x)), np.linalg.cholesky),
    "pinv": (ops.pinv, np.linalg.pinv),
    "lstsq": (
        lambda x: ops.lstsq(x, tf.cast(_RHS, x.dtype)),
        lambda x: np.linalg.solve(x, np.broadcast_to(_RHS, [*x.shape[:-1], 2])),
    ),
    "spectral_function": (
        lambda x: ops.spectral_function(x, tf.exp),
        lambda x: _numpy_function(x, np.exp),
    ),
    "singular_value_function": (
        lambda x: ops.singular_value_function(x, tf.square),
        lambda x: _numpy_function(x, np.square),
    ),
}
ORDER = "the modes add in another order"
every_op = pytest.mark.parametrize("name", list(OPS))


slow = pytest.mark.slow


def _numpy_function(x, function):
    # Of positive definite matrices.
    w, v = np.linalg.eigh(x)
    return (v * function(w)[..., None, :]) @ np.swapaxes(v, -1, -2)


@pytest.fixture(params=matrices.MODES)
def mode(request):
    return request.param


@every_op
def test_it_agrees_with_numpy(name, dtype):
    function, numpy = OPS[name]
    x = matrices.example(dtype)
    truth = numpy(np.asarray(x, np.float64))
    value = function(x)
    assert value.dtype == dtype
    most = 0.51 if dtype.size == 2 else 20
    matrices.assert_agree(value, truth, most, why="decomposed and multiplied again")


@every_op
def test_its_gradient_in_half_precision_is_rounded_once(name, dtype):
    x = matrices.example(dtype)
    slope = matrices.gradient(OPS[name][0], x)
    truth = matrices.gradient(OPS[name][0], tf.cast(x, tf.float64))
    assert slope.dtype == dtype
    most = 0.51 if dtype.size == 2 else 16
    matrices.assert_agree(slope, truth, most, why="decomposed and multiplied again")


@every_op
def test_its_derivatives_agree_with_differences(name):
    function, x = OPS[name][0], matrices.example()

    def weighted(x):
        value = function(x)
        return matrices.weights(value) * value

    matrices.assert_slope_is_difference(weighted, x, 4e6)
    slope = matrices.weighted_slope(function)
    matrices.assert_slope_is_difference(slope, x, 4e6)


@every_op
def test_the_modes_agree_and_only_the_matrix_with_a_nan_is_nan(name):
    function, x = OPS[name][0], matrices.example(tf.float32)
    value, (slope,) = modes.value_and_gradients(function, [x], "eager")
    # Of a third matrix, beside them in the batch, one number is NaN.
    bad = np.array(x[:1])
    bad[0, 2, 1] = NAN
    batch = tf.concat([x, bad], 0)
    for mode in modes.MODES:
        again, (gradient,) = modes.value_and_gradients(function, [batch], mode)
        matrices.assert_agree(again[:2], value, 8, why=ORDER)
        matrices.assert_agree(gradient[:2], slope, 32, why=ORDER)
        for each in (again, gradient):
            assert np.isnan(each[2]).any()


NOT_ALL_COMPILED = [
    *((name, "graph") for name in OPS),
    # Up to 8 s each.
    *(pytest.param(name, "xla", marks=slow) for name in list(OPS)[::3]),
]


@pytest.mark.parametrize(("name", "mode"), NOT_ALL_COMPILED)
def test_the_modes_agree_on_the_second_derivative(name, mode):
    slope, x = matrices.weighted_slope(OPS[name][0]), matrices.example(tf.float32)
    truth = matrices.gradient(slope, x)
    second = modes.value_and_gradients(slope, [x], mode)[1][0]
    matrices.assert_agree(second, truth, 16, why=ORDER)


@every_op
def test_only_the_matrix_with_the_infinite_number_is_nan(name):
    x = np.array(matrices.example(tf.float32))
    x[0, 2, 1] = INF
    function = OPS[name][0]
    value, (slope,) = modes.value_and_gradients(function, [tf.constant(x)], "graph")
    for each in (value, slope):
        assert np.isnan(each[0]).any()
        assert np.isfinite(each[1]).all()


SINGULAR = [
    np.zeros([3, 3]),
    np.ones([3, 3]),
    np.diag([1.0, 0.0, 2.0]),
    -np.eye(3),
    np.full([3, 3], NAN),
    np.full([3, 3], INF),
]


@pytest.mark.parametrize(("name", "mode"), NOT_ALL_COMPILED)
def test_a_matrix_without_incoming_gradient_has_none(name, mode):
    x = tf.constant(np.stack(SINGULAR), tf.float32)
    for silent in modes.silent_gradients(OPS[name][0], [x], mode):
        assert_rounded(silent, 0.0)


@every_op
def test_masking_after_it_is_safe(name):
    x = tf.constant(np.stack([np.eye(3), SINGULAR[4]]), tf.float32)

    def masked(x):
        value = OPS[name][0](x)
        return tf.where(tf.math.is_finite(value), value, tf.zeros_like(value))

    value, (slope,) = modes.value_and_gradients(masked, [x], "graph")
    assert np.isfinite(value).all()
    assert_rounded(slope[1], 0.0)
    assert np.abs(slope[0]).max() > 0


@every_op
def test_it_takes_unknown_shapes(name):
    function, x = OPS[name][0], matrices.example()
    for shape in (None, [None, None, None], [2, None, 3]):

        @tf.function(input_signature=[tf.TensorSpec(shape, x.dtype)], autograph=False)
        def unknown(x):
            return modes.value_and_gradients(OPS[name][0], [x], "eager")

        value, (slope,) = unknown(x)
        matrices.assert_agree(value, function(x))
        matrices.assert_agree(slope, matrices.gradient(function, x))
    # Of unknown rank.
    flat = tf.function(function, autograph=False)
    assert flat(x[0]).shape == function(x)[0].shape
    matrices.assert_agree(function(x[tf.newaxis])[0], function(x))
    known = flat.get_concrete_function(tf.TensorSpec([None, 4, 3, 3], x.dtype))
    assert known.output_shapes == function(x).shape[1:].as_list() or (
        known.output_shapes.as_list() == [None, 4, *function(x).shape[1:]]
    )


@every_op
def test_an_empty_batch_has_an_empty_result_and_gradient(name, mode):
    x = tf.zeros([0, 3, 3])
    value, (slope,) = modes.value_and_gradients(OPS[name][0], [x], mode)
    assert value.shape[0] == 0
    assert slope.shape == [0, 3, 3]


@pytest.mark.parametrize("name", [each for each in OPS if each != "lstsq"])
def test_a_matrix_without_elements_is_the_unit_matrix(name, mode):
    x = tf.zeros([2, 0, 0])
    value, (slope,) = modes.value_and_gradients(OPS[name][0], [x], mode)
    empty = {"det": np.ones([2]), "slogdet": np.zeros([2])}
    assert_rounded(value, empty.get(name, np.zeros([2, 0, 0])))
    assert slope.shape == [2, 0, 0]


@every_op
def test_a_matrix_with_one_element_is_a_number(name):
    x = tf.constant([[[4.0]], [[0.25]]])
    truth = {
        "det": x[:, 0, 0],
        "slogdet": tf.math.log(x)[:, 0, 0],
        "cholesky": tf.sqrt(x),
        "lstsq": tf.constant([[[1.0, 2.0]]]) / x,
        "spectral_function": tf.exp(x),
        "singular_value_function": x * x,
    }
    function = OPS[name][0]
    if name == "lstsq":
        function = lambda x: ops.lstsq(x, tf.constant([[1.0, 2.0]]))  # noqa: E731
    value = function(x)
    assert_rounded(value, truth.get(name, 1 / x))


@every_op
def test_vectorized_map_gives_the_values_and_gradients_of_the_batch(name):
    function, x = OPS[name][0], matrices.example()
    matrices.assert_agree(tf.vectorized_map(function, x), function(x))
    slopes = tf.vectorized_map(lambda x: matrices.gradient(function, x), x)
    matrices.assert_agree(slopes, matrices.gradient(function, x))


@every_op
def test_its_jacobian_agrees_with_its_gradient(name):
    function, x = OPS[name][0], matrices.example()[0]
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = function(x)
    jacobian = tape.jacobian(value, x)
    total = tf.reduce_sum(jacobian, list(range(value.shape.rank)))
    matrices.assert_agree(total, matrices.gradient(function, x))


@every_op
def test_it_can_be_differentiated_forwards_or_refuses(name):
    function, x = OPS[name][0], matrices.example()
    tangent = matrices.weights(x)
    if name in {"pinv", "lstsq", "spectral_function", "singular_value_function"}:
        message = r"has no forward derivative. Put `tf.stop_gradient`"
        with (
            tf.autodiff.ForwardAccumulator(x, tangent),
            pytest.raises(LookupError, match=message),
        ):
            function(x)
        return
    with tf.autodiff.ForwardAccumulator(x, tangent) as accumulator:
        value = function(x)
    total = tf.reduce_sum(tangent * matrices.gradient(function, x))
    assert_rounded(tf.reduce_sum(accumulator.jvp(value)), total)


@every_op
def test_its_operations_are_in_a_name_scope(name):
    function = tf.function(OPS[name][0], autograph=False)
    graph = function.get_concrete_function(matrices.example()).graph
    assert any(op.name.startswith(f"{name}/") for op in graph.get_operations())


def _call(name, x):
    op = getattr(ops, name)
    if name == "lstsq":
        return op(x, x)
    return op(x, tf.exp) if name.endswith("function") else op(x)


@every_op
def test_its_docstring_has_every_section(name):
    op = getattr(ops, name)
    for section in ("Args", "Returns", "Raises", "Numerics", "Examples"):
        assert f"\n{section}:\n" in inspect.getdoc(op), section
    assert "NaN" in documented(op)


@every_op
def test_integers_are_refused_with_a_suggestion(name):
    with pytest.raises(TypeError, match=r"must have a floating .*dtype=int32"):
        _call(name, tf.ones([2, 2], tf.int32))


@every_op
def test_a_vector_is_refused(name):
    with pytest.raises(ValueError, match=r"must be a matrix .* Received: shape=\(2,\)"):
        _call(name, tf.ones([2]))


@pytest.mark.parametrize(
    "name", ["det", "slogdet", "inv", "cholesky", "spectral_function"]
)
def test_matrices_that_are_not_square_are_refused(name):
    message = r"must hold square matrices.*shape=\(None, 2, 3\).*pinv"

    @tf.function(input_signature=[tf.TensorSpec([None, 2, 3])], autograph=False)
    def traced(x):
        return _call(name, x)

    with pytest.raises(ValueError, match=message):
        traced.get_concrete_function()
