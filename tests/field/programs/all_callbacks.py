"""Trains with the callbacks that most scripts have."""

import keras
import numpy as np
from keras import callbacks, layers, losses, optimizers

keras.utils.set_random_seed(15)
x = np.random.rand(12, 3).astype("float32")
y = x.sum(1, keepdims=True)
model = keras.Sequential([keras.Input((3,)), layers.Dense(1)])
model.compile(optimizers.SGD(0.1), losses.MeanSquaredError())


class Printing(callbacks.Callback):
    def on_train_batch_end(self, batch, logs=None):
        print(batch, f"{logs['loss']:.4f}")


model.fit(
    x,
    y,
    batch_size=6,
    epochs=3,
    shuffle=False,
    validation_data=(x, y),
    verbose=0,
    callbacks=[
        Printing(),
        callbacks.TerminateOnNaN(),
        callbacks.EarlyStopping(patience=2),
        callbacks.ModelCheckpoint(
            "best.weights.h5", save_best_only=True, save_weights_only=True
        ),
        callbacks.ReduceLROnPlateau(patience=1, min_delta=10.0),
        callbacks.CSVLogger("log.csv"),
        callbacks.LambdaCallback(
            on_epoch_end=lambda epoch, logs: print(f"{logs['val_loss']:.4f}")
        ),
    ],
)
model.load_weights("best.weights.h5")
print(len(open("log.csv").readlines()), f"{model.evaluate(x, y, verbose=0):.4f}")
