"""Fits a Gaussian process and a hidden Markov model."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

tfb, tfd = tfp.bijectors, tfp.distributions
x = np.linspace(0.0, 1.0, 12).astype("float64")[:, None]
y = np.sin(6.0 * x[:, 0])
positive = tfb.Shift(np.finfo(np.float64).tiny)(tfb.Exp())
size, length, noise = (
    tfp.util.TransformedVariable(np.float64(v), positive) for v in (1.0, 0.3, 0.1)
)
kernel = tfp.math.psd_kernels.ExponentiatedQuadratic(size, length)
process = tfd.GaussianProcess(kernel, x, observation_noise_variance=noise)
optimizer = tf_keras.optimizers.Adam(0.05)


@tf.function(jit_compile=False)
def step():
    with tf.GradientTape() as tape:
        loss = -process.log_prob(y)
    gradients = tape.gradient(loss, process.trainable_variables)
    optimizer.apply_gradients(zip(gradients, process.trainable_variables))
    return loss


for _ in range(10):
    loss = step()
print("process", f"{loss:.4f} {size.numpy():.4f} {length.numpy():.4f}")
posterior = tfd.GaussianProcessRegressionModel(
    kernel, x + 0.01, x, y, observation_noise_variance=noise
)
print("posterior", np.round(posterior.mean().numpy()[:4], 3).tolist())
chain = tfd.HiddenMarkovModel(
    tfd.Categorical(probs=[1.0, 0.0]),
    tfd.Categorical(probs=[[0.9, 0.1], [0.0, 1.0]]),
    tfd.Normal([0.0, 5.0], [1.0, 2.0]),
    num_steps=5,
)
seen = tf.constant([0.1, -0.3, 4.0, 6.0, 5.0])
print("chain", f"{chain.log_prob(seen):.4f}", chain.posterior_mode(seen).numpy())
print(np.round(chain.posterior_marginals(seen).probs_parameter().numpy(), 3).tolist())
