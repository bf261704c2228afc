"""Solves an ordinary differential equation and its adjoint in while loops."""

import tensorflow as tf
from keras import optimizers

w = tf.Variable(0.5 * tf.random.stateless_normal((2, 2), (3, 1)))
b = tf.Variable([0.1, -0.1])
N, H = 12, 0.1


def field(y, w, b):
    return tf.tanh(y @ w + b) - 0.1 * y


def rk4(f, state, h):
    def plus(a, k, c):
        return [p + c * q for p, q in zip(a, k)]

    k1 = f(state)
    k2 = f(plus(state, k1, h / 2))
    k3 = f(plus(state, k2, h / 2))
    k4 = f(plus(state, k3, h))
    return [
        s + h / 6 * (p + 2 * q + 2 * r + t)
        for s, p, q, r, t in zip(state, k1, k2, k3, k4)
    ]


@tf.custom_gradient
def solve(y0, w, b):
    def body(i, y):
        return i + 1, rk4(lambda s: [field(s[0], w, b)], [y], H)[0]

    _, y1 = tf.while_loop(lambda i, y: i < N, body, (tf.constant(0), y0))

    def grad(upstream):
        def augmented(state):
            y, a = state[0], state[1]
            with tf.GradientTape() as tape:
                tape.watch([y, w, b])
                f = field(y, w, b)
            dy, dw, db = tape.gradient(f, [y, w, b], output_gradients=a)
            return [f, -dy, -dw, -db]

        def back(i, *state):
            return (i + 1, *rk4(augmented, list(state), -H))

        start = (tf.constant(0), y1, upstream, tf.zeros_like(w), tf.zeros_like(b))
        _, _, a, dw, db = tf.while_loop(lambda i, *s: i < N, back, start)
        return a, dw, db

    return y1, grad


optimizer = optimizers.RMSprop(0.02)
optimizer.build([w, b])
y0 = tf.random.stateless_normal((8, 2), (4, 4))
target = tf.stack([y0[:, 1], -y0[:, 0]], 1)


@tf.function
def step():
    with tf.GradientTape() as tape:
        end = solve(y0, tf.convert_to_tensor(w), tf.convert_to_tensor(b))
        loss = tf.reduce_mean(tf.square(end - target))
    optimizer.apply(tape.gradient(loss, [w, b]), [w, b])
    return loss


for _ in range(5):
    print(f"{float(step()):.4f}")
