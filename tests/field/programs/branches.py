"""Differentiates functions with branches, cases and arrays from outside of them."""

import tensorflow as tf
from keras import optimizers

w = tf.Variable(1.5)
optimizer = optimizers.SGD(0.1)


@tf.function
def chosen(i, x):
    branches = [lambda: tf.sqrt(x), lambda: tf.math.log(x), lambda: 1.0 / x]
    a = tf.switch_case(i, branches, default=lambda: x)
    cases = [(x > 2, lambda: x - 2), (x > 1, lambda: x * w)]
    b = tf.case(cases, default=lambda: tf.constant(0.0))
    c = tf.cond(
        i > 1,
        lambda: tf.cond(x > 0, lambda: tf.math.log(x) * w, lambda: x),
        lambda: -x,
    )
    return a + b + c


for i in range(4):
    with tf.GradientTape() as tape:
        value = chosen(tf.constant(i), tf.constant(1.2))
    gradient = tape.gradient(value, w)
    optimizer.apply_gradients([(gradient, w)])
    print(f"{value.numpy():.4f} {gradient.numpy():.4f}")


@tf.function
def recurrent(x, steps):
    states = tf.TensorArray(tf.float32, steps, clear_after_read=False)

    def body(t, state, states):
        state = tf.tanh(x * w + state)
        return t + 1, state, states.write(t, state)

    loop = [0, tf.zeros([2]), states]
    *_, states = tf.while_loop(
        lambda t, *_: t < steps, body, loop, maximum_iterations=6, swap_memory=True
    )
    weights = tf.range(1.0, tf.cast(steps, tf.float32) + 1)
    return tf.reduce_sum(states.stack() * weights[:, None]), states.read(1)


with tf.GradientTape() as tape:
    value, row = recurrent(tf.constant([0.3, -0.6]), tf.constant(4))
print(f"{value.numpy():.4f} {tape.gradient(value, w).numpy():.4f}")
print(*(f"{v:.4f}" for v in row.numpy()))


@tf.function
def guarded(x):
    tf.debugging.assert_greater(x, 0.0, message="positive only")
    tf.Assert(x < 100.0, [x])
    return tf.math.log(x)


print(f"{guarded(tf.constant(2.0)).numpy():.4f}")
for refused in (-1.0, 0.0, 1000.0):
    try:
        guarded(tf.constant(refused))
    except tf.errors.InvalidArgumentError as error:
        print("refused", "positive only" in error.message)
