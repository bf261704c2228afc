"""Forecasts a wave from windows of its past."""

import keras
import numpy as np
from keras import callbacks, layers, losses, metrics, optimizers

keras.utils.set_random_seed(9)
wave = np.sin(np.arange(60) / 3).astype("float32")
data = keras.utils.timeseries_dataset_from_array(
    wave[:-5, None], wave[5:], sequence_length=5, batch_size=16
)
model = keras.Sequential([keras.Input((5, 1)), layers.GRU(4), layers.Dense(1)])
model.compile(
    optimizers.Adam(0.01),
    losses.MeanSquaredError(),
    metrics=[metrics.MeanAbsoluteError(), metrics.RootMeanSquaredError()],
)
stop = callbacks.EarlyStopping(monitor="loss", patience=3, restore_best_weights=True)
history = model.fit(data, epochs=3, callbacks=[stop], verbose=0)
for name, values in history.history.items():
    print(name, [f"{value:.4f}" for value in values])
