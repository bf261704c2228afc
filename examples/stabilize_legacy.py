"""Corrects twelve losses of old tutorials with `tfsafe.stabilize`.

None of the functions below is edited: each gets an input that occurs in training (a
confident logit, a small temperature, a sample that is its own positive), once unchanged
and once as `tfsafe.stabilize(loss)`, in a plain call, in a `tf.function` and under
`jit_compile=True`. The reference for each is the same loss in float64, as a numerical
analyst would write it.

    python examples/stabilize_legacy.py
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import numpy as np
import tensorflow as tf

import tfsafe

MODES = ("eager", "graph", "XLA")
# Twenty times the distance of two float32 numbers: right, but for its last digits.
TOLERANCE = 3e-6


def softmax_by_hand(logits, labels):
    p = tf.exp(logits) / tf.reduce_sum(tf.exp(logits), axis=-1, keepdims=True)
    return -tf.reduce_sum(labels * tf.math.log(p))


def softmax_right(logits, labels):
    return -tf.reduce_sum(labels * tf.nn.log_softmax(logits))


def log_with_epsilon(logits, labels):
    p = tf.nn.softmax(logits)
    return tf.reduce_mean(-tf.reduce_sum(labels * tf.math.log(p + 1e-8), axis=1))


def log_right(logits, labels):
    return tf.reduce_mean(-tf.reduce_sum(labels * tf.nn.log_softmax(logits), axis=1))


def clipped_binary(logits, labels):
    p = tf.clip_by_value(tf.sigmoid(logits), 1e-7, 1 - 1e-7)
    return -tf.reduce_mean(labels * tf.math.log(p) + (1 - labels) * tf.math.log(1 - p))


def binary_right(logits, labels):
    return tf.reduce_mean(tf.nn.softplus(logits) - labels * logits)


def discriminator(real, fake):
    d_real, d_fake = tf.nn.sigmoid(real), tf.nn.sigmoid(fake)
    return -tf.reduce_mean(tf.math.log(d_real) + tf.math.log(1.0 - d_fake))


def discriminator_right(real, fake):
    return tf.reduce_mean(tf.nn.softplus(-real) + tf.nn.softplus(fake))


def focal(logits, labels):
    p = 1 / (1 + tf.exp(-logits))
    positive = labels * tf.pow(1 - p, 2.0) * tf.math.log(p)
    negative = (1 - labels) * tf.pow(p, 2.0) * tf.math.log(1 - p)
    return -tf.reduce_sum(positive + negative)


def focal_right(logits, labels):
    sign = 1 - 2 * labels
    p = tf.sigmoid(sign * logits)
    return tf.reduce_sum(p * p * tf.nn.softplus(sign * logits))


def divergence(teacher, student):
    p, q = tf.nn.softmax(teacher), tf.nn.softmax(student)
    return tf.reduce_sum(p * tf.math.log(p / q))


def divergence_right(teacher, student):
    apart = tf.nn.log_softmax(teacher) - tf.nn.log_softmax(student)
    return tf.reduce_sum(tf.nn.softmax(teacher) * apart)


def autoencoder(mean, log_variance):
    sigma = tf.sqrt(tf.exp(log_variance))
    log_square = tf.math.log(tf.square(sigma))
    return -0.5 * tf.reduce_sum(1 + log_square - tf.square(mean) - tf.square(sigma))


def autoencoder_right(mean, log_variance):
    gap = 1 + log_variance - tf.square(mean) - tf.exp(log_variance)
    return -0.5 * tf.reduce_sum(gap)


def mixture(weights, means, log_sigmas, y):
    pi, sigma = tf.nn.softmax(weights), tf.exp(log_sigmas)
    normal = tf.exp(-tf.square((y - means) / sigma) / 2)
    normal = normal / (sigma * np.sqrt(2 * np.pi))
    return tf.reduce_mean(-tf.math.log(tf.reduce_sum(pi * normal, axis=1)))


def mixture_right(weights, means, log_sigmas, y):
    exponents = tf.nn.log_softmax(weights) - log_sigmas - np.log(2 * np.pi) / 2
    exponents -= tf.square((y - means) * tf.exp(-log_sigmas)) / 2
    return tf.reduce_mean(-tf.reduce_logsumexp(exponents, axis=1))


def triplet(anchor, positive, negative):
    near = tf.sqrt(tf.reduce_sum(tf.square(anchor - positive), axis=1))
    far = tf.sqrt(tf.reduce_sum(tf.square(anchor - negative), axis=1))
    return tf.reduce_mean(tf.maximum(near - far + 3.0, 0.0))


def triplet_right(anchor, positive, negative):
    # The slope of a distance at 0 is 0, by convention: the least of its subgradients.
    square = tf.reduce_sum(tf.square(anchor - positive), axis=1)
    apart = square > 0
    near = tf.where(apart, tf.sqrt(tf.where(apart, square, 1.0)), 0.0)
    far = tf.sqrt(tf.reduce_sum(tf.square(anchor - negative), axis=1))
    return tf.reduce_mean(tf.maximum(near - far + 3.0, 0.0))


def contrastive(anchors, others):
    similar = tf.exp(tf.matmul(anchors, others, transpose_b=True) / 0.01)
    chosen = tf.linalg.diag_part(similar)
    return -tf.reduce_mean(tf.math.log(chosen / tf.reduce_sum(similar, axis=1)))


def contrastive_right(anchors, others):
    similar = tf.matmul(anchors, others, transpose_b=True) / 0.01
    return -tf.reduce_mean(tf.linalg.diag_part(tf.nn.log_softmax(similar)))


def log_jaccard(logits, labels):
    p = tf.sigmoid(logits)
    both = tf.reduce_sum(p * labels)
    either = tf.reduce_sum(p) + tf.reduce_sum(labels) - both
    return -tf.math.log(both / either)


def log_jaccard_right(logits, labels):
    # A label 1 counts log p, a label 0 counts nothing.
    log_both = tf.reduce_logsumexp(tf.where(labels > 0, -tf.nn.softplus(-logits), -1e9))
    either = tf.reduce_sum(tf.where(labels > 0, 1.0, tf.sigmoid(logits)))
    return tf.math.log(either) - log_both


def log_cosh(y_pred, y_true):
    error = y_pred - y_true
    return tf.reduce_mean(tf.math.log((tf.exp(error) + tf.exp(-error)) / 2))


def log_cosh_right(y_pred, y_true):
    size = tf.abs(y_pred - y_true)
    return tf.reduce_mean(size + tf.math.log1p(tf.exp(-2 * size)) - np.log(2.0))


# Of each loss its name, itself, how it would be written today, the arguments in which
# it is differentiated, and the others.
ONE_OF_THREE = [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]
CASES = [
    (
        "softmax by hand",
        softmax_by_hand,
        softmax_right,
        [[[1.0, 2.0, 3.0], [120.0, 2.0, 95.0]]],
        [ONE_OF_THREE],
    ),
    (
        "-y log(p + 1e-8)",
        log_with_epsilon,
        log_right,
        [[[-60.0, 0.0, 1.0], [3.0, 2.0, 1.0]]],
        [ONE_OF_THREE],
    ),
    (
        "clipped binary",
        clipped_binary,
        binary_right,
        [[-40.0, 0.5, 30.0]],
        [[1.0, 1.0, 0.0]],
    ),
    (
        "GAN discriminator",
        discriminator,
        discriminator_right,
        [[-120.0, 2.0], [60.0, -1.0]],
        [],
    ),
    ("focal", focal, focal_right, [[-120.0, 1.0, 40.0]], [[1.0, 1.0, 0.0]]),
    (
        "KL divergence",
        divergence,
        divergence_right,
        [[[0.0, 130.0, 1.0]], [[200.0, 0.0, 1.0]]],
        [],
    ),
    (
        "VAE, sigma by exp",
        autoencoder,
        autoencoder_right,
        [[0.5, 1.0], [-120.0, 1.0]],
        [],
    ),
    (
        "mixture density",
        mixture,
        mixture_right,
        [[[0.5, 1.0]], [[0.0, 1.0]], [[0.0, -0.5]]],
        [[[30.0]]],
    ),
    (
        "triplet",
        triplet,
        triplet_right,
        [[[1.0, 2.0], [0.0, 1.0]], [[1.0, 2.0], [0.5, 1.0]]],
        [[[3.0, 2.0], [1.0, 1.5]]],
    ),
    (
        "InfoNCE, T = 0.01",
        contrastive,
        contrastive_right,
        [[[1.0, 0.0], [0.6, 0.8]], [[0.8, 0.6], [0.96, 0.28]]],
        [],
    ),
    (
        "log Jaccard",
        log_jaccard,
        log_jaccard_right,
        [[-110.0, -120.0, 1.0]],
        [[1.0, 1.0, 0.0]],
    ),
    ("log-cosh", log_cosh, log_cosh_right, [[200.0, 1.5]], [[0.0, 0.0]]),
]


def run(loss, variables, labels, mode, dtype):
    """Returns the value of a loss and its gradients, as one long vector."""

    def value_and_gradient(variables, labels):
        with tf.GradientTape() as tape:
            tape.watch(variables)
            value = loss(*variables, *labels)
        gradients = tape.gradient(value, variables)
        return value, tf.concat([tf.reshape(each, [-1]) for each in gradients], 0)

    if mode != "eager":
        value_and_gradient = tf.function(value_and_gradient, jit_compile=mode == "XLA")
    variables = [tf.constant(each, dtype) for each in variables]
    labels = [tf.constant(each, dtype) for each in labels]
    value, gradient = value_and_gradient(variables, labels)
    return value.numpy(), gradient.numpy()


def describe(got, right):
    """Says in a word how a number or a vector compares with the right one."""
    if not np.isfinite(got).all():
        return "NaN" if np.isnan(got).any() else "Inf"
    error = np.abs(got - right).max() / np.abs(right).max()
    return "right" if error <= TOLERANCE else f"off {error:.0%}"


def judge(loss, variables, labels, exact, modes):
    """Returns how the value of a loss does in each mode, and how its gradient does."""
    found = [
        [describe(*pair) for pair in zip(got, exact, strict=True)]
        for got in (run(loss, variables, labels, mode, tf.float32) for mode in modes)
    ]
    return zip(*found, strict=True)


def table(modes):
    """Prints how each loss does as it is, and stabilised."""
    print(f"{'':<34}{'plain':<{9 * len(modes)}}stabilized")
    heads = "".join(f"{mode:<9}" for mode in modes * 2)
    print(f"{'loss':<18}{'exact':<16}{heads}".rstrip())
    count = {"plain": 0, "stabilized": 0}
    for name, loss, stable, variables, labels in CASES:
        exact = run(stable, variables, labels, "eager", tf.float64)
        plain = judge(loss, variables, labels, exact, modes)
        rewritten = tfsafe.stabilize(loss)
        stabilized = judge(rewritten, variables, labels, exact, modes)
        heads = f"{name:<18}{exact[0]:<7.5g}value    ", f"{'':<25}gradient "
        for head, before, after in zip(heads, plain, stabilized, strict=True):
            print(head + "".join(f"{word:<9}" for word in [*before, *after]).rstrip())
            count["plain"] += before.count("right")
            count["stabilized"] += after.count("right")
    total = 2 * len(modes) * len(CASES)
    found = [f"{form}: {right} of {total} right" for form, right in count.items()]
    print(", ".join(found))


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--modes", nargs="+", choices=MODES, default=list(MODES))
    table(parser.parse_args().modes)
    logits, labels = tf.constant([-120.0, 1.0, 40.0]), tf.constant([1.0, 1.0, 0.0])
    print(f"\n{tfsafe.stabilize.report(focal, logits, labels)}")


if __name__ == "__main__":
    main()
