"""Clips the gradient of each example and adds noise, as in differential privacy."""

import tensorflow as tf
from keras import Input, Model, layers, losses, optimizers

inputs = Input((6,))
outputs = layers.Dense(3)(layers.Dense(8, activation="gelu")(inputs))
model = Model(inputs, outputs)
for i, w in enumerate(model.trainable_variables):
    w.assign(0.4 * tf.random.stateless_normal(w.shape, (i, 3)))
loss_fn = losses.SparseCategoricalCrossentropy(from_logits=True, reduction="none")
optimizer = optimizers.SGD(0.2, momentum=0.9)
optimizer.build(model.trainable_variables)
generator = tf.random.Generator.from_seed(5)


def example_gradient(example):
    x, y = example
    with tf.GradientTape() as tape:
        loss = tf.squeeze(loss_fn(y[None], model(x[None], training=True)))
    grads = tape.gradient(loss, model.trainable_variables)
    clipped, _ = tf.clip_by_global_norm(grads, 0.5)
    return loss, clipped


@tf.function
def step(x, y):
    each, grads = tf.vectorized_map(example_gradient, (x, y))
    total = [tf.reduce_mean(g, 0) + 0.01 * generator.normal(g.shape[1:]) for g in grads]
    optimizer.apply(total, model.trainable_variables)
    return tf.reduce_mean(each), tf.linalg.global_norm(total)


x = tf.random.stateless_normal((16, 6), (1, 2))
y = tf.cast(tf.argmax(x[:, :3], 1), tf.int32)
for _ in range(4):
    loss, norm = step(x, y)
    print(f"{float(loss):.4f} {float(norm):.4f}")
