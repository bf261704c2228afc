"""Cross entropies: of logits, of probabilities, focal and generalised."""

import keras
import numpy as np
import tensorflow as tf

from tests.catalogue.rows import FINITE, Row, formula
from tests.support import contrast, modes
from tfsafe import losses, ops

INF = float("inf")
# Keras 3.3 puts no 0 in the place of masked classes after its softmax.
is_old = not hasattr(keras.losses, "CategoricalGeneralizedCrossEntropy")
MASKED_AFTERWARDS = () if is_old else ("graph", "xla")
# In eager mode no tensor knows the operation that made it.
TRACED = ("graph", "xla")
softmax, sigmoid = keras.activations.softmax, keras.activations.sigmoid


def of(name, y_true, predict=lambda z: z, **options):
    """Returns Keras' loss and ours of what `predict` makes of the argument."""

    def loss(module):
        def run(z):
            # Looked up late: older Keras does not have them all.
            made = getattr(module, name)
            if isinstance(made, type):
                made = made(**options)
            return made(tf.constant(y_true), predict(z))

        return run

    return loss(keras.losses), loss(losses)


def row(id, trap, fixed_by, pair, args, value, gradients, **options):
    fixed_by = f"losses.{fixed_by}"
    return formula(id, trap, fixed_by, *pair, [args], value, [gradients], **options)


def masked_softmax(z):
    return keras.layers.Softmax()(z, mask=tf.constant([[True, True, False]]))


def reshaped(z):
    return keras.layers.Reshape((2,))(softmax(z))


def _unknown_class(loss):
    """A label of -1 is refused with advice; traced, it makes the loss NaN alone.

    It spoils no other row's gradient.
    """

    def is_right(mode):
        if mode == "eager":
            try:
                loss(from_logits=True)(np.array([-1, 0]), tf.zeros((2, 2)))
            except ValueError as error:
                return "Give labels to be ignored" in str(error)
            return False
        _, (slope,) = modes.value_and_gradients(
            lambda z: loss(reduction="none", from_logits=True)([-1, 0], z),
            [tf.constant([[1.0, 2.0], [1.0, 2.0]])],
            mode,
        )
        value = modes.compile_for(mode, loss(from_logits=True))(
            np.array([-1, 0]), tf.constant([[1.0, 2.0], [1.0, 2.0]])
        )
        return np.isnan(value) and contrast.agrees(
            slope, [[0, 0], [-0.7310586, 0.7310586]]
        )

    return is_right


E50 = float(np.exp(-50.0))

ROWS = [
    row("L01", "BinaryCrossentropy()(1, tf.sigmoid(-20.))", "BinaryCrossentropy",
        of("BinaryCrossentropy", [[1.0]], tf.sigmoid), [[-20]], 20, [[-1]],
        fails_in=["eager"]),
    row("L03", "SparseCategoricalCrossentropy(ignore_class=-1)(0, softmax([0., 200.]))",
        "SparseCategoricalCrossentropy",
        of("SparseCategoricalCrossentropy", [0], softmax, ignore_class=-1), [[0, 200]],
        200, [[-1, 1]]),
    row("L04", "CategoricalCrossentropy() of a float16 softmax of [0, 20], class 0",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[1.0, 0.0]], softmax), [[0, 20]], 20, [[-1, 1]],
        dtype="float16"),
    row("L05", "BinaryCrossentropy()(1, bfloat16 sigmoid(-20.))", "BinaryCrossentropy",
        of("BinaryCrossentropy", [[1.0]], sigmoid), [[-20]], 20, [[-1]],
        dtype="bfloat16"),
    row("L05b", "BinaryCrossentropy()(0, float16 sigmoid(9.))", "BinaryCrossentropy",
        of("BinaryCrossentropy", [[0.0]], sigmoid), [[9]], 9.0001234, [[0.9998766]],
        dtype="float16"),
    row("L06", "CategoricalCrossentropy() of Reshape(softmax([0., 200.])), class 0",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[1.0, 0.0]], reshaped), [[0, 200]], 200,
        [[-1, 1]], modes=TRACED),
    row("L06b", "CategoricalCrossentropy() of Softmax()(z, mask), class 0",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[1.0, 0.0, 0.0]], masked_softmax), [[0, 200, 0]],
        200, [[-1, 1, 0]], modes=TRACED, fails_in=MASKED_AFTERWARDS),
    row("L07", "binary_crossentropy(1, p) at a float16 p of 1", "binary_crossentropy",
        of("binary_crossentropy", [[1.0]]), [[1]], [0], [[-1]], dtype="float16"),
    row("L08", "binary_crossentropy(1, p) at a bfloat16 p of 1", "binary_crossentropy",
        of("binary_crossentropy", [[1.0]]), [[1]], [0], [[-1]], dtype="bfloat16"),
    row("L11", "BinaryFocalCrossentropy(gamma=0.5)(1, sigmoid(40.))",
        "BinaryFocalCrossentropy",
        of("BinaryFocalCrossentropy", [[1.0]], tf.sigmoid, gamma=0.5), [[40]], FINITE,
        FINITE),
    row("L12", "BinaryFocalCrossentropy(gamma=0)(1, sigmoid(40.))",
        "BinaryFocalCrossentropy",
        of("BinaryFocalCrossentropy", [[1.0]], tf.sigmoid, gamma=0.0), [[40]], FINITE,
        FINITE),
    row("L13", "CategoricalFocalCrossentropy(from_logits=True) at [-100, 100], class 0",
        "CategoricalFocalCrossentropy",
        of("CategoricalFocalCrossentropy", [[1.0, 0.0]], from_logits=True),
        [[-100, 100]], 50, [[-0.25, 0.25]]),
    formula("L45", "-log(exp(s / t) / sum(exp(s / t))) at t = 0.01, s = [1, 0.5]",
        "ops.log_softmax",
        lambda s: -tf.math.log(tf.exp(s[0] / 0.01) / tf.reduce_sum(tf.exp(s / 0.01))),
        lambda s: -ops.log_softmax(s / 0.01)[0],
        [[1, 0.5]], E50, [[-100 * E50, 100 * E50]], is_by_hand=True),
    row("L55", "CategoricalGeneralizedCrossEntropy() of a class of probability 0",
        "CategoricalGeneralizedCrossEntropy",
        of("CategoricalGeneralizedCrossEntropy", [0], tf.nn.softmax), [[0, 200]], 2,
        [[0, 0]]),
    row("L60", "CategoricalCrossentropy(from_logits=True) with a logit of -inf",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[0.0, 1.0, 0.0]], from_logits=True),
        [[-INF, 0, 1]], 1.3132617, [[0, -0.7310586, 0.7310586]],
        fails_in=["eager", "graph"]),
    row("L62", "BinaryCrossentropy(from_logits=True)(0, -inf)", "BinaryCrossentropy",
        of("BinaryCrossentropy", [[0.0]], from_logits=True), [[-INF]], 0, [[0]]),
    row("L64", "CategoricalCrossentropy() of a row of zeros, labels and predictions",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[0.0, 0.0]]), [[0, 0]], 0, [[0, 0]]),
    row("L65", "CategoricalCrossentropy(from_logits=True) of a row of zero labels",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[0.0, 0.0]], from_logits=True), [[1, 2]], 0,
        [[0, 0]]),
    row("L65b", "CategoricalCrossentropy(from_logits=True) of labels [0.5, 0]",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[0.5, 0.0]], from_logits=True), [[1, 2]],
        0.6566308, [[-0.3655293, 0.3655293]]),
    Row("L69", "SparseCategoricalCrossentropy() of a label of -1: an error, or all NaN",
        "losses.SparseCategoricalCrossentropy",
        _unknown_class(keras.losses.SparseCategoricalCrossentropy),
        _unknown_class(losses.SparseCategoricalCrossentropy)),
    row("L94", "CategoricalCrossentropy() of logits [-1, 1], from_logits forgotten",
        "CategoricalCrossentropy",
        of("CategoricalCrossentropy", [[1.0, 0.0]]), [[-1, 1]], FINITE, FINITE),
    row("L95", "BinaryCrossentropy()(1, -3.), from_logits forgotten",
        "BinaryCrossentropy",
        of("BinaryCrossentropy", [[1.0]]), [[-3]], FINITE, [[-1]]),
]  # fmt: skip
