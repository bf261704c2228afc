"""Fits a structural time series and forecasts it."""

import numpy as np
import tensorflow as tf
import tensorflow_probability as tfp
import tf_keras

tf.random.set_seed(0)
steps = np.arange(36)
series = (0.1 * steps + np.sin(steps * np.pi / 3.0)).astype("float32")
trend = tfp.sts.LocalLinearTrend(observed_time_series=series)
season = tfp.sts.Seasonal(num_seasons=6, observed_time_series=series)
model = tfp.sts.Sum([trend, season], observed_time_series=series)
surrogate = tfp.sts.build_factored_surrogate_posterior(model, seed=(1, 2))
losses = tfp.vi.fit_surrogate_posterior(
    model.joint_distribution(series).log_prob,
    surrogate,
    tf_keras.optimizers.Adam(0.1),
    5,
    seed=(3, 4),
)
print("loss", f"{losses[0]:.1f} {losses[-1]:.1f}")
forecast = tfp.sts.forecast(
    model, series, surrogate.sample(3, seed=(5, 6)), num_steps_forecast=4
)
print("forecast", forecast.mean().shape, np.isfinite(forecast.stddev()).all())
