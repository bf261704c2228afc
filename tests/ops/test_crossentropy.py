import mpmath
import numpy as np
import pytest
import tensorflow as tf

from tests.support import modes, oracle
from tests.support.oracle import assert_close
from tfsafe import ops
from tfsafe._limits import LIMITS

INF, NAN = float("inf"), float("nan")
dense = ops.categorical_crossentropy
sparse = ops.sparse_categorical_crossentropy
binary = ops.binary_crossentropy

# Rows of logits with a hard case each, and the label of each row. No label leads by
# more than float16 can resolve in the gradient.
LOGITS = [[0.5, -1.0, 2.0], [30.0, 0.0, -30.0], [4.0, 4.0, 4.0], [-7.0, 3.0, 2.5]]
INDICES = [2, 1, 0, 1]
SOFT = [[0.5, 0.25, 0.25], [0.0, 0.5, 0.0], [0.0, 0.0, 0.0], [1.0, 2.0, 3.0]]

# In ulps of the result. XLA:CPU's float64 log1p is up to 127 ulp off.
BUDGET = {("float64", "xla"): 130}


def truth_of_row(labels, logits):
    """-sum(y * log_softmax(z)) at 60 digits."""
    with mpmath.workdps(oracle.DIGITS):
        z = [mpmath.mpf(float(v)) for v in logits]
        lse = mpmath.log(mpmath.fsum(map(mpmath.exp, z)))
        return mpmath.fsum(
            mpmath.mpf(float(y)) * (lse - v) for y, v in zip(labels, z, strict=True)
        )


def slope_of_row(labels, logits):
    """p * sum(y) - y at 60 digits."""
    with mpmath.workdps(oracle.DIGITS):
        z = [mpmath.mpf(float(v)) for v in logits]
        total = mpmath.fsum(map(mpmath.exp, z))
        y = [mpmath.mpf(float(v)) for v in labels]
        return [
            mpmath.exp(v) / total * mpmath.fsum(y) - each
            for v, each in zip(z, y, strict=True)
        ]


def rows(function, labels, logits):
    arrays = [np.asarray(tf.cast(x, tf.float64)) for x in (labels, logits)]
    return [function(y, z) for y, z in zip(*arrays, strict=True)]


def test_rows_agree_with_mpmath(mode, dtype):
    labels, logits = tf.constant(SOFT, dtype), tf.constant(LOGITS, dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda z: dense(labels, z, from_logits=True), [logits], mode
    )
    budget = BUDGET.get((dtype.name, mode), 4)
    assert oracle.ulp_error(value, rows(truth_of_row, labels, logits)) <= budget
    truth = np.array(rows(slope_of_row, labels, logits), object).astype(float)
    # p * sum(y) - y is a difference: in ulps of the largest label.
    assert_close(slope, truth, 3, scale=3.0)
    assert np.abs(truth[0]).min() > 0.05


def test_indices_agree_with_mpmath(mode, dtype):
    logits = tf.constant(LOGITS, dtype)
    labels = np.eye(3)[INDICES]
    value = modes.compile_for(mode, lambda z: sparse(INDICES, z, from_logits=True))(
        logits
    )
    truth = np.array(rows(truth_of_row, labels, logits))
    scale = np.maximum(truth, 1.0)
    budget = BUDGET.get((dtype.name, mode), 4)
    assert oracle.ulp_error(value, truth, scale) <= budget
    assert value.dtype == dtype


def test_a_confident_and_right_row_is_right_to_the_rounding_of_1(mode, dtype):
    logits = tf.constant([[12.0, 0.0, 1.0]], dtype)
    value, (slope,) = modes.value_and_gradients(
        lambda z: sparse([0], z, from_logits=True), [logits], mode
    )
    eps = LIMITS[dtype.name].eps
    truth = float(rows(truth_of_row, [[1, 0, 0]], logits)[0])
    assert abs(float(value[0]) - truth) <= eps
    truths = np.array(rows(slope_of_row, [[1, 0, 0]], logits)[0], float)
    assert np.abs(np.asarray(slope[0], float) - truths).max() <= eps
    # The other classes keep their digits.
    assert oracle.ulp_error(slope[0, 1:], truths[1:]) <= 20


def test_binary_targets_from_logits_agree_with_mpmath(mode, dtype):
    z = oracle.grid(dtype, 1e-3, 80.0, 12)
    z = tf.concat([-z, z, [tf.zeros([], dtype)]], 0)
    for target in (0.0, 1.0):
        labels = tf.fill(z.shape, tf.constant(target, dtype))
        value, (slope,) = modes.value_and_gradients(
            lambda z, y=labels: binary(y, z, from_logits=True), [z], mode
        )
        sign = 1 - 2 * target
        truth = oracle.exact(lambda v, s=sign: mpmath.log1p(mpmath.exp(s * v)), z)
        true_slope = oracle.exact(lambda v, s=sign: s / (1 + mpmath.exp(-s * v)), z)
        budget = BUDGET.get((dtype.name, mode), 4)
        assert oracle.ulp_error(value, truth) <= budget
        assert oracle.ulp_error(slope, true_slope) <= budget


def test_binary_targets_from_probabilities_agree_with_mpmath(mode, dtype):
    p = tf.concat(
        [oracle.grid(dtype, 1e-4, 0.5, 8), 1 - oracle.grid(dtype, 0.01, 0.4, 8)], 0
    )
    labels = tf.fill(p.shape, tf.constant(0.25, dtype))
    value, (slope,) = modes.value_and_gradients(lambda p: binary(labels, p), [p], mode)
    truth = oracle.exact(lambda p: -(mpmath.log(p) + 3 * mpmath.log1p(-p)) / 4, p)
    true_slope = oracle.exact(lambda p: (p - 0.25) / (p * (1 - p)), p)
    budget = BUDGET.get((dtype.name, mode), 4)
    assert oracle.ulp_error(value, truth) <= budget
    # The slope crosses 0 at p = 1/4: its error is that of its two terms.
    exact_p = np.asarray(tf.cast(p, tf.float64))
    error = np.abs(np.asarray(tf.cast(slope, tf.float64)) - true_slope.astype(float))
    eps = LIMITS[dtype.name].eps
    assert (error / (0.25 / exact_p + 0.75 / (1 - exact_p))).max() <= 2 * eps


@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
@pytest.mark.parametrize("loss", [dense, binary], ids=["rows", "binary"])
def test_zero_upstream_gives_zero_gradients(loss, from_logits, mode):
    x = tf.constant([[NAN, 0.0, 1.0], [INF, -INF, 0.5], [0.0, 0.0, 0.0]])
    y = tf.constant([[0.0, 1.0, NAN], [NAN, NAN, NAN], [1.0, 0.0, 0.0]])
    _, gradients = modes.value_and_gradients(
        lambda y, x: loss(y, x, from_logits=from_logits),
        [y, x],
        mode,
        upstream=np.zeros([3] if loss is dense else [3, 3]),
    )
    for gradient in gradients:
        assert_close(gradient, np.zeros([3, 3]))


@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
def test_zero_upstream_gives_zero_gradients_for_indices(from_logits, mode):
    x = tf.constant([[NAN, 0.0, 1.0], [INF, -INF, 0.5], [0.0, 0.0, 0.0]])
    _, (gradient,) = modes.value_and_gradients(
        lambda x: sparse([0, 1, 7], x, from_logits=from_logits, label_smoothing=0.1),
        [x],
        mode,
        upstream=np.zeros(3),
    )
    assert_close(gradient, np.zeros([3, 3]))


def test_the_slope_in_a_label_is_0_where_its_loss_is_infinite(
    mode,
):
    logits = tf.constant([[-INF, 0.0, 1.0]])
    _, (slope,) = modes.value_and_gradients(
        lambda y: dense(y, logits, from_logits=True), [tf.constant([[0.0, 1, 0]])], mode
    )
    assert_close(slope, [[0, 1.3132617, 0.3132617]])


def test_the_second_gradient_of_binary_targets_agrees_with_mpmath(mode):
    z = tf.constant([-20.0, -1.0, 0.0, 3.0, 20.0])
    got = modes.second_gradient(
        lambda z: binary(tf.ones_like(z), z, from_logits=True), z, mode
    )
    truth = oracle.exact(lambda v: 1 / (2 + mpmath.exp(v) + mpmath.exp(-v)), z)
    assert oracle.ulp_error(got, truth) <= 8

    p = tf.constant([0.0, 1e-3, 0.5, 0.75, 1.0])
    got = modes.second_gradient(lambda p: binary(tf.zeros_like(p), p), p, mode)
    truth = oracle.exact(lambda p: 1 / (1 - p) ** 2 if p < 1 else mpmath.mpf(0), p)
    assert oracle.ulp_error(got, truth) <= 4


@pytest.mark.parametrize("bounded", [False, True])
def test_derivatives_in_probabilities_are_those_of_the_logarithms(bounded, mode):
    p = tf.constant([1e-3, 0.125, 0.5, 0.75, 0.875])
    target = tf.constant([0.25, 0.75, 1.0, 0.0, 0.5])

    def loss(p):
        return binary(target, p, bounded=bounded)

    _, (slope,) = modes.value_and_gradients(loss, [p], mode)
    pairs = tf.stack([target, p], -1)

    def exact(function):
        return oracle.exact_rows(lambda row, _: function(*row), pairs, pairs)

    truth = exact(lambda y, p: (1 - y) / (1 - p) - y / p)
    # Two terms of both signs: the unit is that of the larger one.
    scale = np.asarray(1 / tf.minimum(p, 1 - p), float)
    assert oracle.ulp_error(slope, truth, scale) <= 3
    second = modes.second_gradient(loss, p, mode)
    truth = exact(lambda y, p: (1 - y) / (1 - p) ** 2 + y / p**2)
    assert oracle.ulp_error(second, truth) <= 4


def test_a_bounded_loss_continues_with_the_slope_1_and_no_curvature(mode):
    p = tf.constant([0.0, 1.0, -0.5, 1.5])
    target = tf.constant([1.0, 0.0, 0.75, 0.25])

    def loss(p):
        return binary(target, p, bounded=True)

    value, (slope,) = modes.value_and_gradients(loss, [p], mode)
    top = -np.log(LIMITS["float32"].tiny)
    outside = 0.75 * (top + 0.5) + 0.25 * np.log(1.5)
    assert_close(value, [top, top, outside, outside])
    assert_close(slope, [-1.0, 1.0, -0.25 / 1.5 - 0.75, 0.75 + 0.25 / 1.5])
    second = modes.second_gradient(loss, p, mode)
    assert_close(second, [0.0, 0.0, -0.25 / 1.5**2, -0.25 / 1.5**2])


@pytest.mark.parametrize("kind", ["dense", "sparse"])
def test_the_second_gradient_of_rows_is_that_of_the_softmax(kind, mode):
    z = tf.constant([[1.0, -2.0, 3.0], [0.5, 20.0, -1.0]])
    labels = tf.constant([[0.5, 0.25, 1.0], [2.0, 0.0, 0.5]])

    def loss(z):
        if kind == "sparse":
            return sparse([2, 0], z, from_logits=True)
        return dense(labels, z, from_logits=True)

    # The plain sum of a slope is 0, and so is its gradient.
    weights = np.array([[1.0, 2.0, -1.0], [3.0, 0.5, 2.0]], np.float32)

    def weighted_slope(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = loss(z)
        return tape.gradient(value, z) * weights

    _, (got,) = modes.value_and_gradients(weighted_slope, [z], mode)
    wide = np.asarray(z, np.float64)
    probs = np.exp(wide - wide.max(-1, keepdims=True))
    probs /= probs.sum(-1, keepdims=True)
    total = 1.0
    if kind == "dense":
        total = np.asarray(labels, float).sum(-1, keepdims=True)
    along = (probs * weights).sum(-1, keepdims=True)
    assert_close(got, total * probs * (weights - along))


@pytest.mark.parametrize("axis", [0, 1, -1])
@pytest.mark.parametrize("from_logits", [True, False], ids=["logits", "probabilities"])
def test_classes_may_lie_along_any_axis(axis, from_logits, mode):
    x = tf.random.stateless_uniform([3, 4, 5], [1, 2], 0.1, 1.0)
    classes = x.shape[axis]
    shape = [size for i, size in enumerate(x.shape) if i != axis % 3]
    labels = tf.reshape(tf.range(np.prod(shape)) % classes, shape)
    expected = modes.compile_for(
        mode,
        lambda x: dense(
            tf.one_hot(labels, classes), x, from_logits=from_logits, label_smoothing=0.2
        ),
    )(tf.experimental.numpy.moveaxis(x, axis, -1))
    for function in (
        lambda x: sparse(
            labels, x, from_logits=from_logits, axis=axis, label_smoothing=0.2
        ),
        lambda x: dense(
            tf.one_hot(labels, classes, axis=axis),
            x,
            from_logits=from_logits,
            axis=axis,
            label_smoothing=0.2,
        ),
    ):
        got = modes.compile_for(mode, function)(x)
        assert_close(got, expected)


def test_smoothing_spreads_what_the_row_has():
    x = tf.constant([[0.0, 1.0, 2.0], [0.0, 1.0, 2.0]])
    labels = tf.constant([[0.0, 1.0, 0.0], [0.0, 0.0, 0.0]])
    spread = tf.constant([[0.1, 0.8, 0.1], [0.0, 0.0, 0.0]])
    assert_close(
        dense(labels, x, from_logits=True, label_smoothing=0.3),
        dense(spread, x, from_logits=True),
    )
    assert_close(
        binary(labels, x, from_logits=True, label_smoothing=0.3),
        binary(0.7 * labels + 0.15, x, from_logits=True),
    )


def test_smoothing_onto_an_impossible_class_costs_inf_with_a_finite_gradient(mode):
    probs = np.array([0, 1, np.e]) / (1 + np.e)
    for smoothing in (0.5, 1.0):
        smoothed = (1 - smoothing) * np.eye(3)[1] + smoothing / 3
        value, (gradient,) = modes.value_and_gradients(
            lambda z, s=smoothing: sparse([1], z, from_logits=True, label_smoothing=s),
            [tf.constant([[-INF, 0.0, 1.0]])],
            mode,
        )
        assert_close(value, [INF])
        assert_close(gradient, [probs - smoothed])


def test_a_jacobian_by_vectorized_map_is_the_gradient(mode):
    z = tf.constant([[-INF, 0.0, 1.0], [3.0, -2.0, 0.0]])

    def jacobian(z):
        with tf.GradientTape() as tape:
            tape.watch(z)
            value = dense([[0.0, 1, 0], [1, 0, 0]], z, from_logits=True)
            value += sparse([1, 0], z, from_logits=True)
            value = value[:, tf.newaxis]
        return tape.batch_jacobian(value, z)

    got = modes.compile_for(mode, jacobian)(z)
    _, (slope,) = modes.value_and_gradients(
        lambda z: sparse([1, 0], z, from_logits=True), [z], mode
    )
    assert_close(got[:, 0], 2 * slope)


def test_empty_batches_and_unknown_shapes_pass(mode):
    function = modes.compile_for(mode, lambda z: sparse([], z, from_logits=True))
    with pytest.raises(TypeError, match="integer dtype"):
        function(tf.zeros([0, 3]))
    labels = tf.zeros([0], tf.int32)
    function = modes.compile_for(mode, lambda z: sparse(labels, z, from_logits=True))
    assert function(tf.zeros([0, 3])).shape == (0,)

    traced = tf.function(
        dense,
        input_signature=[tf.TensorSpec([None, None]), tf.TensorSpec([None, None])],
        autograph=False,
        jit_compile=mode == "xla",
    )
    x = tf.constant([[0.5, 0.5]])
    assert_close(traced(x, x), [np.log(2)])


@pytest.mark.usefixtures("grappler_off")
def test_tensorflow_fails_where_the_ops_do_not():
    labels, logits = tf.constant([[0.0, 1, 0]]), tf.constant([[-INF, 0.0, 1.0]])
    assert np.isnan(tf.nn.softmax_cross_entropy_with_logits(labels, logits))
    assert np.isfinite(dense(labels, logits, from_logits=True))

    none = tf.zeros([1, 3])
    _, (slope,) = modes.value_and_gradients(
        lambda z: tf.nn.softmax_cross_entropy_with_logits(none, z), [logits], "eager"
    )
    assert np.abs(slope).max() > 0.7

    logit = tf.constant([-INF])
    assert np.isnan(tf.nn.sigmoid_cross_entropy_with_logits(tf.zeros([1]), logit))
    assert binary(tf.zeros([1]), logit, from_logits=True) == 0
