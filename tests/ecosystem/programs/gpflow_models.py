"""Fits exact, variational and sparse Gaussian processes."""

import gpflow
import numpy as np
import tensorflow as tf

np.random.seed(0)
tf.random.set_seed(0)
x = np.random.rand(15, 1)
y = np.sin(8.0 * x) + 0.1 * np.random.randn(15, 1)
kernel = gpflow.kernels.Matern52() + gpflow.kernels.Linear()
model = gpflow.models.GPR((x, y), kernel)
found = gpflow.optimizers.Scipy().minimize(
    model.training_loss, model.trainable_variables, options={"maxiter": 8}
)
print("GPR", f"{found.fun:.3f}")
mean, variance = model.predict_f(np.array([[0.1], [0.5]]))
print(np.round(mean.numpy().ravel(), 2).tolist(), bool(np.all(variance > 0)))

labels = (y > 0.2).astype(float)
model = gpflow.models.VGP(
    (x, labels), gpflow.kernels.SquaredExponential(), gpflow.likelihoods.Bernoulli()
)
found = gpflow.optimizers.Scipy().minimize(
    model.training_loss, model.trainable_variables, options={"maxiter": 5}
)
print("VGP", f"{found.fun:.3f}")

model = gpflow.models.SVGP(
    gpflow.kernels.SquaredExponential(),
    gpflow.likelihoods.StudentT(),
    inducing_variable=x[:5].copy(),
    num_data=len(x),
)
loss = model.training_loss_closure((x, y), compile=True)
optimizer = tf.keras.optimizers.Adam(0.05)
natural = gpflow.optimizers.NaturalGradient(gamma=0.1)
gpflow.set_trainable(model.q_mu, False)
gpflow.set_trainable(model.q_sqrt, False)
for _ in range(5):
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(model.trainable_variables)
        value = loss()
    gradients = tape.gradient(value, model.trainable_variables)
    optimizer.apply_gradients(zip(gradients, model.trainable_variables))
    natural.minimize(loss, [(model.q_mu, model.q_sqrt)])
    print("SVGP", f"{float(value):.3f}")
for likelihood in (gpflow.likelihoods.Poisson(), gpflow.likelihoods.Softmax(3)):
    width = likelihood.latent_dim or 1
    out = np.array([[1.0], [2.0]]) if width == 1 else np.array([[1], [2]])
    value = likelihood.log_prob(x[:2], np.full((2, width), 0.3), out)
    print(type(likelihood).__name__, np.round(value.numpy(), 4).tolist())
