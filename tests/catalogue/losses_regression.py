"""Losses that are not cross entropies: formulas, weights, masks and element counts."""

import functools

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, Row, formula
from tests.support import contrast, modes
from tfsafe import losses

NAN, INF = float("nan"), float("inf")


def both(id, name, trap, y_true, y_pred, value, gradients, fixed_by=None, **options):
    """Returns the row of a loss class, Keras' and ours, of the same labels."""
    usual, ours = options.pop("usual", {}), options.pop("ours", {})
    weights = options.pop("sample_weight", None)
    prepare = options.pop("prepare", lambda p: p)

    def call(package, arguments):
        def function(p):
            loss = getattr(package, name)(**arguments)
            labels = tf.constant(np.array(y_true, "float32"))
            return loss(labels, prepare(p), sample_weight=weights)

        return function

    return formula(
        id,
        trap,
        fixed_by or f"losses.{name}",
        call(keras.losses, usual),
        call(losses, ours),
        [y_pred],
        value,
        [gradients],
        **options,
    )


def masked(p):
    """Masks the steps whose values are 2."""
    return keras.layers.Masking(2.0, dtype=p.dtype.name)(p)


def half(package):
    """Returns a squared error in float16, which Keras 3.3 has to be told afterwards."""
    try:
        return package.MeanSquaredError(dtype="float16")
    except TypeError:
        loss = package.MeanSquaredError()
        loss.dtype = "float16"
        return loss


def counted(id, trap, prepare):
    """Returns the row of 300 x 300 float16 errors of 0.1."""

    def call(package):
        labels = np.zeros([300, 300, 1], "float16")
        return lambda p: half(package)(labels, prepare(p))

    return formula(
        id,
        trap,
        "losses.MeanSquaredError",
        call(keras.losses),
        call(losses),
        [np.full([300, 300, 1], 0.1)],
        0.01,
        [FINITE],
        dtype="float16",
    )


def _is_scalar_zero(package, mode):
    empty = tf.zeros([0, 3])
    value = modes.compile_for(mode, package.MeanSquaredError())(empty, empty)
    return value.shape == () and float(value) == 0


SWEPT = [
    "BinaryCrossentropy",
    "BinaryFocalCrossentropy",
    "CategoricalCrossentropy",
    "CategoricalFocalCrossentropy",
    "SparseCategoricalCrossentropy",
    "Poisson",
    "KLDivergence",
    "MeanSquaredError",
    "MeanAbsoluteError",
    "MeanAbsolutePercentageError",
    "MeanSquaredLogarithmicError",
    "CosineSimilarity",
    "LogCosh",
    "Hinge",
    "SquaredHinge",
    "CategoricalHinge",
    "Huber",
    "Dice",
    "Tversky",
    "CategoricalGeneralizedCrossEntropy",
]
# Right and wrong with certainty, far out, nothing, no probability, a negative one.
INPUTS = [
    ([1.0, 0.0], [1.0, 0.0]),
    ([1.0, 0.0], [0.0, 1.0]),
    ([1.0, 0.0], [-1e4, 1e4]),
    ([0.0, 0.0], [0.0, 0.0]),
    ([1.0, 0.0], [0.0, 0.0]),
    ([1.0, 0.0], [-0.5, -0.5]),
]


def _sweep(package, mode):
    """Tells whether each loss and its gradient are bounded for all inputs."""
    names = [name for name in SWEPT if hasattr(keras.losses, name)]
    rows = tf.constant([y_true for y_true, _ in INPUTS])

    def one(name, x):
        if name in ("Dice", "Tversky"):
            # One number for all that they are given, in the oldest Keras.
            loss = getattr(package, name)()
            return tf.map_fn(lambda pair: loss(*pair), (rows, x), tf.float32)
        takes_index = name.startswith(("Sparse", "CategoricalGeneralized"))
        y_true = tf.zeros(len(INPUTS), tf.int32) if takes_index else rows
        return tf.reshape(getattr(package, name)(reduction="none")(y_true, x), [-1])

    def every_loss(x):
        return tf.stack([one(name, x[i]) for i, name in enumerate(names)])

    x = np.array([[p for _, p in INPUTS]] * len(names), "float32")
    with contrast.without_grappler():
        values, (slopes,) = modes.value_and_gradients(
            every_loss, [tf.constant(x)], mode
        )
    bounded = np.isfinite(values).all() and np.isfinite(slopes).all()
    return bool(bounded and np.abs(slopes).max() <= 1e5)


def _ctc(package, labels, options, logits):
    return package.CTC(**options)(tf.constant(labels), logits)


def ctc(id, trap, labels, logits, value, gradients, **options):
    """Returns the row of a CTC loss."""
    call = functools.partial
    return formula(
        id,
        trap,
        "losses.CTC",
        call(_ctc, keras.losses, labels, {}),
        call(_ctc, losses, labels, options),
        [logits],
        value,
        [gradients],
    )


THIRD, SIXTH = 1 / 3, 1 / 6

ROWS = [
    both("L20", "KLDivergence", "keras.losses.KLDivergence on the softmax of [0, 200]",
         [[1, 0]], [[0, 200]], 200, [[-1, 1]], prepare=keras.activations.softmax),
    formula("L21", "keras.losses.KLDivergence on 100,000 equal probabilities",
            "losses.KLDivergence",
            lambda p: keras.losses.KLDivergence()(tf.one_hot([3], 100000), p),
            lambda p: losses.KLDivergence()(tf.one_hot([3], 100000), p),
            [np.full([1, 100000], 1e-5)], np.log(1e5), [FINITE]),
    formula("L22", "keras.losses.Poisson on exp(-100) for a count of 5",
            "losses.Poisson",
            lambda z: keras.losses.Poisson()(tf.constant([[5.0]]), tf.exp(z)),
            lambda z: losses.Poisson(log_input=True)(tf.constant([[5.0]]), z),
            [[[-100.0]]], 500, [[[-5.0]]]),
    both("L25", "Poisson", "keras.losses.Poisson on a rate of -0.1",
         [[3]], [[-0.1]], FINITE, FINITE),
    both("L26", "MeanSquaredLogarithmicError",
         "keras.losses.MeanSquaredLogarithmicError of 2e-5 and 1e-5",
         [[2e-5]], [[1e-5]], 9.999699502e-11, [[-1.999949950e-5]]),
    both("L27", "MeanSquaredLogarithmicError",
         "keras.losses.MeanSquaredLogarithmicError of 1 and -0.5",
         [[1]], [[-0.5]], np.log(4) ** 2, [[-4 * np.log(4)]]),
    both("L28", "MeanAbsolutePercentageError",
         "keras.losses.MeanAbsolutePercentageError of a target of 0",
         [[0]], [[1]], 100, [[0]]),
    both("L29", "LogCosh", "keras.losses.LogCosh of an error of 1e-4",
         [[0]], [[1e-4]], 5e-9, [[1e-4]]),
    both("L40", "CosineSimilarity", "keras.losses.CosineSimilarity of a zero vector",
         [[1, 0]], [[0, 0]], 0, [[0, 0]]),
    both("L41", "CosineSimilarity", "keras.losses.CosineSimilarity at length 1e-20",
         [[1, 0]], [[1e-20, 0]], -1, FINITE),
    both("L42", "CosineSimilarity", "keras.losses.CosineSimilarity at length 1e20",
         [[1, 0]], [[1e20, 0]], -1, FINITE),
    both("L50", "Dice", "keras.losses.Dice, no label and nothing predicted",
         [[0, 0]], [[0, 0]], 0, [[0.5, 0.5]]),
    both("L51", "Dice", "keras.losses.Dice, no label and 0.5 predicted",
         [[0, 0]], [[0.5, 0.5]], THIRD, [[2 / 9, 2 / 9]]),
    both("L52", "Tversky", "keras.losses.Tversky, no label and 0.5 predicted",
         [[0, 0]], [[0.5, 0.5]], THIRD, [[2 / 9, 2 / 9]]),
    both("L63", "CategoricalHinge", "keras.losses.CategoricalHinge of a logit of -inf",
         [[0, 1, 0]], [[-INF, 0, 1]], 2, [[0, -1, 1]]),
    both("L70", "MeanSquaredError",
         "keras.losses.MeanSquaredError, a NaN target with weight 0",
         [[NAN], [1]], [[2], [3]], 2, [[0], [2]], sample_weight=[0.0, 1.0]),
    both("L71", "MeanSquaredError",
         "keras.losses.MeanSquaredError, a NaN target under a Keras mask",
         [[[NAN], [1]]], [[[2], [3]]], 4, [[[0], [4]]], prepare=masked),
    both("L74", "MeanSquaredError",
         "keras.losses.MeanSquaredError, an overflow with weight 0",
         [[0]], [[1e30]], 0, [[0]], sample_weight=[0.0]),
    counted("L75", "keras.losses.MeanSquaredError in float16, 90,000 masked steps",
            masked),
    counted("L76", "keras.losses.MeanSquaredError in float16, 90,000 steps",
            lambda p: p),
    Row("L77", "keras.losses.MeanSquaredError of an empty batch",
        "losses.MeanSquaredError", functools.partial(_is_scalar_zero, keras.losses),
        functools.partial(_is_scalar_zero, losses)),
    ctc("L90", "keras.losses.CTC, labels that do not fit into the frames",
        [[1, 1], [1, 0]], np.zeros([2, 2, 3]), np.log(3) / 2, FINITE),
    ctc("L92", "keras.losses.CTC, a class with logit -inf",
        [[1, 0, 0]], [[[0, 0, -INF]] * 3], np.log(4 / 3),
        [[[0, 0, 0], [SIXTH, -SIXTH, 0], [0, 0, 0]]]),
    Row("L93", "every class of keras.losses, on six simple inputs",
        "losses.Poisson", functools.partial(_sweep, keras.losses),
        functools.partial(_sweep, losses)),
]  # fmt: skip
