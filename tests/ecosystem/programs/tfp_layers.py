"""Trains layers of distributions with tf_keras."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

tfd, tfl = tfp.distributions, tfp.layers
tf_keras.utils.set_random_seed(0)
x = np.linspace(-1.0, 1.0, 32).astype("float32")[:, None]
y = np.sin(3.0 * x)
model = tf_keras.Sequential([
    tf_keras.layers.Dense(8, activation="relu"),
    tf_keras.layers.Dense(2),
    tfl.DistributionLambda(
        lambda t: tfd.Normal(t[..., :1], 1e-3 + tf.math.softplus(t[..., 1:]))
    ),
])
model.compile(tf_keras.optimizers.Adam(0.02), lambda y, p: -p.log_prob(y))
history = model.fit(x, y, epochs=3, batch_size=8, verbose=0)
print("normal", [f"{v:.3f}" for v in history.history["loss"]])
model = tf_keras.Sequential([
    tf_keras.Input([1]),
    tfl.DenseReparameterization(4, activation="tanh"),
    tf_keras.layers.Dense(1),
])
model.compile(tf_keras.optimizers.SGD(0.001), "mse")
history = model.fit(x, y, epochs=2, batch_size=8, verbose=0, shuffle=False)
print("flipout", np.isfinite(history.history["loss"]).all())
