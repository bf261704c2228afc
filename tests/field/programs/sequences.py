"""Reads named inputs, targets and weights from a PyDataset, then from a generator."""

import math

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(45)


class Rows(keras.utils.PyDataset):
    def __init__(self, x, y, **options):
        super().__init__(**options)
        self.x, self.y = x, y

    def __len__(self):
        return math.ceil(len(self.x) / 5)

    def __getitem__(self, i):
        x, y = self.x[5 * i : 5 * i + 5], self.y[5 * i : 5 * i + 5]
        targets = {"kind": y % 3, "size": y.astype("float32")[:, None]}
        weights = {"kind": np.ones(len(x)), "size": np.linspace(0.0, 1.0, len(x))}
        return {"image": x, "mean": x.mean((1, 2))}, targets, weights


x, y = np.random.rand(22, 6, 6, 1).astype("float32"), np.random.randint(0, 9, 22)
image, mean = keras.Input((6, 6, 1), name="image"), keras.Input((1,), name="mean")
h = layers.SeparableConv2D(4, 3, activation="swish")(image)
h = layers.SpatialDropout2D(0.2, seed=5)(layers.GroupNormalization(2)(h))
h = layers.Concatenate()([layers.GlobalAveragePooling2D()(h), mean])
kind = layers.Dense(3, activation="softmax", name="kind")(h)
size = layers.Dense(1, activation="exponential", name="size")(h)
model = keras.Model({"image": image, "mean": mean}, {"kind": kind, "size": size})
model.compile(
    optimizers.Adamax(0.01),
    loss={"kind": "sparse_categorical_crossentropy", "size": losses.Poisson()},
    loss_weights={"kind": 1.0, "size": 0.1},
    metrics={"kind": ["accuracy"], "size": [metrics.RootMeanSquaredError(name="r")]},
    weighted_metrics={"kind": [], "size": ["mape"]},
)
train, valid = Rows(x[:16], y[:16], workers=2), Rows(x[16:], y[16:])
history = model.fit(train, validation_data=valid, epochs=2, shuffle=False, verbose=0)
for name, values in sorted(history.history.items()):
    print(name, [f"{value:.3f}" for value in values])
batches = (valid[i % 2] for i in range(4))
history = model.fit(batches, steps_per_epoch=2, epochs=2, verbose=0)
print([f"{value:.3f}" for value in history.history["loss"]])
