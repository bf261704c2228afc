"""Functions with signatures, relaxed shapes, nested functions, loops and arrays."""

import tensorflow as tf


@tf.function(input_signature=[tf.TensorSpec([None, 3]), tf.TensorSpec([], tf.int32)])
def halved(x, n):
    rows = tf.TensorArray(tf.float32, 0, dynamic_size=True, element_shape=[3])
    count = 0
    while n > 1:
        n = n // 2 if n % 2 == 0 else 3 * n + 1
        size = tf.math.log(tf.cast(n, tf.float32) + 1.0)
        rows = rows.write(count, tf.reduce_mean(x, 0) * size)
        count += 1
        if count >= 8:
            break
    return rows.stack()


@tf.function(reduce_retracing=True)
def widths(x):
    total = tf.zeros(tf.shape(x)[1])
    for row in x:
        if tf.reduce_sum(row) < 0:
            continue
        total += tf.sqrt(tf.abs(row))
    return total


@tf.function
def outer(x, depth):
    @tf.function
    def inner(v):
        return tf.tanh(v) + 0.1 * v

    for _ in tf.range(depth):
        x = inner(x)
    return x, tf.nest.map_structure(lambda v: v * 2, {"a": x, "b": (x, 1.0)})


class Power(tf.Module):
    @tf.function(autograph=False)
    def __call__(self, n, *, start=1.0):
        loop = 0, start
        return tf.while_loop(lambda i, _: i < n, lambda i, s: (i + 1, s * 1.1), loop)[1]


for size in (1, 2, 3):
    x = tf.reshape(tf.range(3.0 * size), [size, 3]) - 2.0
    print(f"{tf.reduce_sum(halved(x, 7)).numpy():.3f}")
    print(*(f"{v:.3f}" for v in widths(x).numpy()))
out, tree = outer(tf.constant([0.5, -2.0]), 3)
print(*(f"{v:.4f}" for v in [*out.numpy(), *tree["b"][0].numpy()]))
print(f"{Power()(tf.constant(5)).numpy():.4f} {Power()(3, start=2.0).numpy():.4f}")
concrete = widths.get_concrete_function(tf.TensorSpec([None, 4]))
print(concrete(tf.ones([2, 4])).numpy())
with tf.GradientTape() as tape:
    v = tf.constant([1.0, -1.0])
    tape.watch(v)
    value = tf.reduce_sum(outer(v, tf.constant(2))[0])
print(*(f"{g:.4f}" for g in tape.gradient(value, v).numpy()))
