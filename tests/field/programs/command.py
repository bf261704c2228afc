"""A command: argparse, logging, a time limit, atexit, and errors that it handles."""

import argparse
import atexit
import logging
import signal
import sys
import warnings

import keras
import numpy as np
import tensorflow as tf
from keras import layers, optimizers


def main(arguments):
    parser = argparse.ArgumentParser()
    parser.add_argument("--epochs", type=int, default=2)
    options = parser.parse_args(arguments)
    logging.basicConfig(stream=sys.stdout, force=True, format="%(message)s")
    keras.utils.set_random_seed(14)
    atexit.register(lambda: None)
    previous = signal.signal(signal.SIGALRM, lambda *_: sys.exit(9))
    signal.alarm(500)
    w = tf.Variable([[1.0], [2.0]])
    optimizer = optimizers.SGD(0.1)
    x = np.random.randn(16, 2).astype("float32")

    @tf.function
    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((x @ w) ** 2)
        optimizer.apply([tape.gradient(loss, w)], [w])
        return loss

    for _ in range(options.epochs):
        logging.warning("loss %.4f", step(x).numpy())
    try:
        step(np.zeros((2, 3), "float32"))
    except (ValueError, tf.errors.InvalidArgumentError):
        logging.error("a wrong shape")
    try:
        tf.debugging.assert_positive(w - 10.0, message="small")
    except tf.errors.InvalidArgumentError as error:
        print("small" in error.message)
    try:
        keras.Sequential([keras.Input((2,)), layers.Dense(1)])(np.zeros((1, 3)))
    except ValueError:
        print("refused")
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        warnings.warn("own", UserWarning, stacklevel=1)
        step(x)
    print(len([each for each in caught if each.category is UserWarning]))
    signal.alarm(0)
    signal.signal(signal.SIGALRM, previous)
    logging.basicConfig(force=True)
    return 0


if __name__ == "__main__":
    sys.exit(main([]))
