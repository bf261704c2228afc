"""Fits surrogate posteriors, a likelihood and a small network of distributions."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

tfb, tfd = tfp.bijectors, tfp.distributions
tf.random.set_seed(0)
data = np.random.RandomState(0).gamma(2.0, 1.5, 30).astype("float32")


def log_joint(rate, mean):
    return (
        tfd.LogNormal(0.0, 1.0).log_prob(rate)
        + tfd.Normal(0.0, 3.0).log_prob(mean)
        + tf.reduce_sum(tfd.Gamma(2.0, rate[..., None]).log_prob(data), -1)
    )


surrogate = tfp.experimental.vi.build_factored_surrogate_posterior(
    event_shape=[[], []], bijector=[tfb.Softplus(), None], seed=(1, 1)
)
losses = tfp.vi.fit_surrogate_posterior(
    log_joint, surrogate, tf_keras.optimizers.Adam(0.1), 30, sample_size=2, seed=(2, 3)
)
print("loss", f"{losses[0]:.2f} {losses[-1]:.2f}")
print("rate", f"{surrogate.sample(50, seed=(4, 5))[0].numpy().mean():.3f}")

scale = tfp.util.TransformedVariable(1.0, tfb.Softplus())
shift = tf.Variable(0.0)
likelihood = tfd.Normal(shift, scale)
path = tfp.math.minimize(
    lambda: -tf.reduce_mean(likelihood.log_prob(data)),
    num_steps=40,
    optimizer=tf_keras.optimizers.Adam(0.1),
)
print("minimize", f"{path[-1]:.4f} {shift.numpy():.3f} {scale.numpy():.3f}")
found = tfp.optimizer.lbfgs_minimize(
    lambda v: tfp.math.value_and_gradient(
        lambda v: tf.reduce_sum((v - [1.0, -2.0]) ** 4 + v**2), v
    ),
    tf.zeros([2]),
    max_iterations=20,
)
print("lbfgs", np.round(found.position.numpy(), 3).tolist())
