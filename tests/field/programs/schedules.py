"""Trains under learning rate schedules and clipped gradients."""

import keras
import numpy as np
from keras import layers, losses, optimizers

x = np.random.RandomState(0).rand(12, 3).astype("float32")
y = x.sum(1, keepdims=True)
for schedule in (
    optimizers.schedules.CosineDecay(0.1, 10, warmup_steps=2, warmup_target=0.2),
    optimizers.schedules.ExponentialDecay(0.1, 2, 0.9),
    optimizers.schedules.PiecewiseConstantDecay([2], [0.1, 0.01]),
):
    keras.utils.set_random_seed(16)
    model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
    model.compile(optimizers.AdamW(schedule, clipnorm=1.0), losses.MeanSquaredError())
    history = model.fit(x, y, batch_size=4, epochs=2, shuffle=False, verbose=0)
    print([f"{v:.4f}" for v in history.history["loss"]])
    print(
        f"{float(model.optimizer.learning_rate):.4f}", int(model.optimizer.iterations)
    )
