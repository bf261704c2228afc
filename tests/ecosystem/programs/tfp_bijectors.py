"""Maps values forwards and backwards, with the logarithms of the volumes."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp

tfb, tfd = tfp.bijectors, tfp.distributions
x = tf.constant([[-1.5, 0.3, 2.0], [0.0, -0.2, 0.7]])
BIJECTORS = {
    "Sigmoid": tfb.Sigmoid(),
    "Softplus": tfb.Softplus(),
    "Exp": tfb.Exp(),
    "Tanh": tfb.Tanh(),
    "SoftClip": tfb.SoftClip(0.0, 1.0),
    "Ascending": tfb.Ascending(),
    "SinhArcsinh": tfb.SinhArcsinh(0.2, 1.3),
    "NormalCDF": tfb.NormalCDF(),
    "Chain": tfb.Chain([tfb.Shift(1.0), tfb.Scale(2.0), tfb.Softplus()]),
    "Softsign": tfb.Softsign(),
}
for name, bijector in BIJECTORS.items():

    @tf.function
    def there_and_back(x, bijector=bijector):
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = bijector.forward(x)
            volume = bijector.forward_log_det_jacobian(x, event_ndims=1)
        back = bijector.inverse(tf.identity(y))
        return y, volume, back, tape.gradient(volume, x)

    for value in there_and_back(x):
        print(name, np.round(value.numpy().ravel(), 4).tolist())

correlation = tfb.CorrelationCholesky()
print(np.round(correlation.forward(tf.range(3.0) / 3.0).numpy(), 4).tolist())
tf.random.set_seed(0)
spline = tfb.RationalQuadraticSpline(
    bin_widths=[[0.5, 0.5, 1.0]],
    bin_heights=[[1.0, 0.5, 0.5]],
    knot_slopes=[[1.0, 2.0]],
)
print(np.round(spline.forward(tf.constant([-0.4, 0.2, 0.6])).numpy(), 4).tolist())
flow = tfd.TransformedDistribution(
    tfd.MultivariateNormalDiag(tf.zeros(2)),
    tfb.RealNVP(1, shift_and_log_scale_fn=lambda x, n: (0.5 * x, tf.tanh(x))),
)
print(np.round(flow.log_prob([[0.1, 0.4], [1.0, -2.0]]).numpy(), 4).tolist())
