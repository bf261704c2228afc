"""Is interrupted, goes on from a backup, and keeps the best model."""

import keras
import numpy as np
from keras import callbacks, layers, losses, metrics, optimizers

keras.utils.set_random_seed(42)
x = np.random.rand(40, 5).astype("float32")
y = (x.sum(1) > 2.5).astype("int32")
options = {
    "batch_size": 8,
    "epochs": 4,
    "verbose": 0,
    "shuffle": False,
    "validation_split": 0.2,
}


def new_model():
    model = keras.Sequential([
        keras.Input((5,)),
        layers.Dense(6, "relu"),
        layers.Dense(1, "sigmoid"),
    ])
    model.compile(
        optimizers.Adam(0.02),
        losses.BinaryCrossentropy(),
        metrics=[metrics.AUC(20, name="auc"), metrics.Precision(name="precision")],
    )
    return model


class Interrupt(callbacks.Callback):
    def on_epoch_begin(self, epoch, logs=None):
        if epoch == 2:
            raise RuntimeError("out of time")


try:
    backup = callbacks.BackupAndRestore("backup")
    new_model().fit(x, y, callbacks=[backup, Interrupt()], **options)
except RuntimeError as error:
    print(error)
model = new_model()
history = model.fit(
    x,
    y,
    callbacks=[
        callbacks.BackupAndRestore("backup"),
        callbacks.ModelCheckpoint("best.keras", save_best_only=True),
        callbacks.LearningRateScheduler(lambda epoch, rate: rate * 0.5),
        callbacks.ReduceLROnPlateau(patience=1),
        callbacks.CSVLogger("log.csv"),
    ],
    **options,
)
for name, values in sorted(history.history.items()):
    print(name, [f"{value:.4f}" for value in values])
stop = callbacks.EarlyStopping(min_delta=1.0, restore_best_weights=True)
print(model.fit(x, y, callbacks=[stop], **options).epoch, stop.stopped_epoch)
best = keras.models.load_model("best.keras")
print([f"{value:.4f}" for value in best.evaluate(x, y, verbose=0)])
