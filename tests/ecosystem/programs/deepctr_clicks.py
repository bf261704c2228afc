"""Trains models of click rates."""

import os

os.environ["TF_USE_LEGACY_KERAS"] = "1"

import numpy as np
import tensorflow as tf
from deepctr.feature_column import DenseFeat, SparseFeat, get_feature_names
from deepctr.models import DCN, DeepFM

rng = np.random.RandomState(0)
columns = [SparseFeat("user", 8, 4), SparseFeat("item", 9, 4), DenseFeat("age", 1)]
names = get_feature_names(columns)
data = {
    "user": rng.randint(0, 8, 32),
    "item": rng.randint(0, 9, 32),
    "age": rng.rand(32).astype("float32"),
}
clicks = rng.randint(0, 2, 32)
for make in (DeepFM, DCN):
    tf.keras.utils.set_random_seed(0)
    model = make(columns, columns, dnn_hidden_units=(8,), task="binary")
    model.compile("adam", "binary_crossentropy", metrics=["binary_crossentropy"])
    inputs = {name: data[name] for name in names}
    history = model.fit(
        inputs, clicks, batch_size=8, epochs=2, verbose=0, shuffle=False
    )
    print(make.__name__, [f"{v:.4f}" for v in history.history["loss"]])
    print(f"{float(np.mean(model.predict(inputs, verbose=0))):.4f}")
