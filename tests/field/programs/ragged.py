"""Averages ragged rows of tokens."""

import tensorflow as tf

rows = tf.ragged.constant([[1, 2, 3], [4], [2, 2]])
table = tf.Variable(tf.random.stateless_normal((5, 3), (1, 1)))


@tf.function
def mean_norm(rows):
    vectors = tf.ragged.map_flat_values(tf.nn.embedding_lookup, table, rows)
    means = tf.reduce_mean(vectors, axis=1)
    return tf.reduce_mean(tf.norm(means, axis=-1))


for _ in range(2):
    with tf.GradientTape() as tape:
        value = mean_norm(rows)
    table.assign_sub(0.1 * tf.convert_to_tensor(tape.gradient(value, table)))
    print(f"{value.numpy():.4f}")
