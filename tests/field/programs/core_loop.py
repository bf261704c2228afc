"""Fits a polynomial with variables and a GradientTape."""

import tensorflow as tf

x = tf.linspace(-2.0, 2.0, 21)
y = x**2 + 2.0 * x - 5.0


class Quadratic(tf.Module):
    def __init__(self):
        self.w = tf.Variable([0.1, 0.2, 0.3])

    @tf.function
    def __call__(self, x):
        return self.w[0] * x**2 + self.w[1] * x + self.w[2]


model = Quadratic()
for step in range(3):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean((model(x) - y) ** 2)
    (gradient,) = tape.gradient(loss, [model.w])
    model.w.assign_sub(0.05 * gradient)
    print(step, f"{loss.numpy():.4f}", [f"{v:.4f}" for v in model.w.numpy()])
