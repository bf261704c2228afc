"""Writes loops, breaks and branches that AutoGraph converts."""

import tensorflow as tf
from keras import optimizers


@tf.function(input_signature=[tf.TensorSpec([None], tf.int64)])
def fizzbuzz(numbers):
    out = tf.TensorArray(tf.string, 0, dynamic_size=True)
    for i in tf.range(tf.size(numbers)):
        value = numbers[i]
        if value % 3 == 0:
            out = out.write(i, "fizz")
        elif value % 5 == 0:
            continue
        else:
            out = out.write(i, tf.strings.as_string(value))
    return out.stack()


class Recurrent(tf.Module):
    def __init__(self, n):
        super().__init__()
        self.w = tf.Variable(0.3 * tf.random.stateless_normal((n, n), (1, 1)))

    @tf.function(reduce_retracing=True)
    def __call__(self, x, lengths):
        x = tf.transpose(x, [1, 0, 2])
        state = tf.zeros_like(x[0])
        states = tf.TensorArray(tf.float32, tf.shape(x)[0])
        for t in tf.range(tf.shape(x)[0]):
            new = tf.tanh(x[t] @ self.w + state)
            state = tf.where((t < lengths)[:, None], new, state)
            states = states.write(t, state)
        return tf.transpose(states.stack(), [1, 0, 2])


recurrent = Recurrent(3)
optimizer = optimizers.SGD(0.1)
optimizer.build([recurrent.w])


@tf.function
def train(data):
    total, count = 0.0, 0
    for x, lengths in data:
        with tf.GradientTape() as tape:
            h = recurrent(x, lengths)
            mask = tf.sequence_mask(lengths, tf.shape(x)[1], tf.float32)
            loss = tf.reduce_sum(h**2 * mask[..., None]) / tf.reduce_sum(mask)
        optimizer.apply([tape.gradient(loss, recurrent.w)], [recurrent.w])
        total, count = total + loss, count + 1
        if total > 1e3:
            break
    return total / tf.cast(count, tf.float32)


@tf.function
def square_root(a):
    x = tf.ones_like(a)
    for _ in tf.range(20):
        new = 0.5 * (x + a / x)
        if tf.reduce_max(tf.abs(new - x)) < 1e-6:
            break
        x = new
    return x


@tf.function
def route(i, x):
    return tf.switch_case(i, [lambda: tf.exp(x), lambda: tf.math.log(x)])


print(*(word.decode() for word in fizzbuzz(tf.range(1, 7, dtype=tf.int64)).numpy()))
rows = tf.random.stateless_normal((6, 5, 3), (2, 2)), [5, 3, 1, 2, 5, 4]
data = tf.data.Dataset.from_tensor_slices(rows).batch(2)
print(*(f"{float(train(data)):.4f}" for _ in range(3)))
print(*(f"{v:.4f}" for v in square_root(tf.constant([2.0, 9.0, 1e-4])).numpy()))
print(*(f"{float(route(tf.constant(i), tf.constant(2.0))):.4f}" for i in range(2)))
