"""A `GradientTape` loop under XLA that survives a non-finite batch.

The data and the model are those of `long_sequences.py`: digits read in 576 steps, six
of them with a window of NaN. The whole step is compiled with `jit_compile=True`, where
`tf.debugging.check_numerics` and every assertion vanish without a word. One line
differs between the two runs: the optimizer is wrapped. Then `tfsafe.checked` says where
the NaN comes from.

    python examples/custom_loop.py --steps 300
"""

import argparse

import keras
import numpy as np
import tensorflow as tf
from long_sequences import batches, load

import tfsafe
from tfsafe.optimizers import SafeOptimizer


def make_step(model, optimizer):
    """Returns the compiled training step, as people write it."""
    optimizer.build(model.trainable_variables)

    @tf.function(jit_compile=True)
    def step(sequences, labels):
        with tf.GradientTape() as tape:
            logits = model(sequences, training=True)
            losses = keras.losses.sparse_categorical_crossentropy(
                labels, logits, from_logits=True
            )
            loss = tf.reduce_mean(losses)
        gradients = tape.gradient(loss, model.trainable_variables)
        optimizer.apply(gradients, model.trainable_variables)
        return loss

    return step


def build(seed):
    keras.utils.set_random_seed(seed)
    return keras.Sequential([
        keras.Input((576, 1)),
        keras.layers.LSTM(32),
        keras.layers.Dense(10),
    ])


def train(name, optimizer, data, steps, seed):
    """Runs the loop and prints what it was worth."""
    sequences, unseen, labels, truths = data
    model = build(seed)
    step = make_step(model, optimizer)
    losses = [float(step(*batch)) for batch in batches(sequences, labels, steps, seed)]
    accuracy = np.mean(model(unseen).numpy().argmax(-1) == truths)
    finite = all(np.isfinite(weight).all() for weight in model.get_weights())
    print(
        f"{name:<16}accuracy {accuracy:.2f}   non-finite losses "
        f"{np.isnan(losses).sum():>4} of {steps}   "
        f"weights {'finite' if finite else 'NaN'}"
    )


def find(data, steps, seed):
    """Runs the plain loop under the checks up to the first non-finite value."""
    sequences, _, labels, _ = data
    step = tfsafe.checked(make_step(build(seed), keras.optimizers.Adam(0.02)))
    try:
        for batch in batches(sequences, labels, steps, seed):
            step(*batch)
    except tfsafe.NumericsError as error:
        print(f"\nNumericsError: {error}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=300)
    parser.add_argument("--seed", type=int, default=0)
    args = parser.parse_args()

    data = load()
    adam = keras.optimizers.Adam(0.02)
    train("Adam", adam, data, args.steps, args.seed)
    wrapped = SafeOptimizer(keras.optimizers.Adam(0.02))
    train("SafeOptimizer", wrapped, data, args.steps, args.seed)
    print(f"SafeOptimizer handled {wrapped.nonfinite_steps} non-finite steps.")
    find(data, args.steps, args.seed)


if __name__ == "__main__":
    main()
