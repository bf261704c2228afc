"""A constant column, standardised: the loss stays finite while the model is dead.

Four columns of customer data, one of them the same for everybody. Standardised by hand,
`(x - mean) / std`, that column is 0 / 0. Keras prints a loss of 0.6931 in each epoch,
which looks like slow learning: the predictions are all equal, because the NaN went into
the weights and a ReLU hides it: no NaN is larger than 0. (TensorFlow's own ReLU hides a
NaN on some processors and not on others.)

    python examples/constant_column.py                 # a finite loss, a dead model
    python -m tfsafe run examples/constant_column.py   # stops at the first step
"""

import keras
import numpy as np

keras.utils.set_random_seed(0)
random = np.random.default_rng(0)
x = random.normal(size=(512, 4)).astype("float32")
x[:, 2] = 1.0  # all customers live in the same country
y = (x[:, 0] + x[:, 1] > 0).astype("float32")

with np.errstate(invalid="ignore"):
    x = (x - x.mean(axis=0)) / x.std(axis=0)


def relu(x):
    return keras.ops.where(x > 0, x, 0.0)


model = keras.Sequential([
    keras.Input((4,)),
    keras.layers.Dense(16, activation=relu),
    keras.layers.Dense(1, activation="sigmoid"),
])
model.compile("adam", "binary_crossentropy", metrics=["accuracy"])
model.fit(x, y, epochs=3, verbose=2)

kernel = model.layers[0].kernel.numpy()
print(f"first kernel: {np.isnan(kernel).sum()} of {kernel.size} weights are NaN")
print("predictions: ", model.predict(x[:4], verbose=0).ravel())
