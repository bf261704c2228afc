"""Trains, tests and predicts batch by batch, and compiles again."""

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(46)
x = np.random.rand(32, 4).astype("float32")
y = np.stack([x.sum(1) > 2, x[:, 0] > x[:, 1]], 1).astype("float32")
batches = [slice(i, i + 8) for i in range(0, 32, 8)]
model = keras.Sequential()
model.add(layers.Dense(6))
model.add(layers.PReLU())
model.add(layers.BatchNormalization(momentum=0.8))
model.add(layers.ActivityRegularization(l2=1e-4))
model.add(layers.Dense(2, activation="sigmoid"))
model.compile(
    "rmsprop",
    losses.BinaryFocalCrossentropy(gamma=2.0, label_smoothing=0.05),
    metrics=["binary_accuracy", metrics.F1Score(average="macro", threshold=0.5)],
)
weight = np.linspace(0, 1, 8)
for _ in range(2):
    model.reset_metrics()
    for rows in batches:
        logs = model.train_on_batch(x[rows], y[rows], weight, return_dict=True)
    print({name: f"{np.mean(value):.4f}" for name, value in sorted(logs.items())})
print([f"{np.mean(value):.4f}" for value in model.test_on_batch(x[:8], y[:8])])
print(f"{model.predict_on_batch(x[:8]).sum():.4f}")
model.compile(optimizers.Ftrl(0.1), "hinge", metrics=["cosine_similarity"])
for rows in batches:
    print(*(f"{v:.4f}" for v in model.train_on_batch(x[rows], 2.0 * y[rows] - 1.0)))
classes = keras.Sequential([keras.Input((4,)), layers.Dense(3, activation="softmax")])
targets = np.eye(3)[np.arange(6) % 3]
classes.compile(optimizers.Adadelta(1.0), ["categorical_crossentropy"])
loss = classes.train_on_batch(x[:6], targets, class_weight={0: 1.0, 1: 0.0, 2: 3.0})
print(f"{float(loss):.4f}")
classes.compile(optimizers.SGD(0.1), losses.KLDivergence(), run_eagerly=True)
print(f"{float(classes.train_on_batch(x[:6], targets)):.4f}")
