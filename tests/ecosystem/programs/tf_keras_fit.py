"""Trains, evaluates, saves and loads models of tf_keras."""

import numpy as np
import tf_keras

tf_keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
x, y = rng.randn(48, 5).astype("float32"), rng.randint(0, 3, 48)
model = tf_keras.Sequential([
    tf_keras.Input([5]),
    tf_keras.layers.Dense(8, activation="relu"),
    tf_keras.layers.BatchNormalization(),
    tf_keras.layers.Dense(3, activation="softmax"),
])
model.compile(
    tf_keras.optimizers.Adam(0.01),
    "sparse_categorical_crossentropy",
    metrics=["accuracy"],
)
history = model.fit(x, y, batch_size=16, epochs=3, verbose=0, validation_data=(x, y))
for name, values in sorted(history.history.items()):
    print(name, [f"{v:.4f}" for v in values])
print(f"{model.evaluate(x, y, verbose=0)[0]:.4f}")
model.save("model.h5")
again = tf_keras.models.load_model("model.h5")
print(f"{float(np.sum(again.predict(x, verbose=0)[:, 0])):.4f}")

words = rng.randint(1, 20, (16, 6))
words[:, 4:] = 0
reader = tf_keras.Sequential([
    tf_keras.layers.Embedding(20, 4, mask_zero=True),
    tf_keras.layers.LSTM(6),
    tf_keras.layers.Dense(1, activation="sigmoid"),
])
reader.compile("rmsprop", "binary_crossentropy")
history = reader.fit(words, words[:, :1] % 2, epochs=2, verbose=0, shuffle=False)
print([f"{v:.4f}" for v in history.history["loss"]])
