"""Adds low-rank adapters to a frozen model, then quantizes it."""

import keras
import numpy as np
from keras import layers, losses, metrics, optimizers

keras.utils.set_random_seed(43)
x, y = np.random.randint(0, 20, (24, 6)), np.random.randint(0, 3, 24)
inputs = keras.Input((6,), dtype="int32")
tokens, middle = layers.Embedding(20, 8, name="tokens"), layers.Dense(16, "relu")
h = tokens(inputs)
h = layers.LayerNormalization()(h + layers.MultiHeadAttention(2, 4)(h, h))
h = middle(layers.GlobalAveragePooling1D()(h))
model = keras.Model(inputs, layers.Dense(3)(h))


def train():
    model.compile(
        optimizers.Adam(1e-2),
        losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=[metrics.SparseCategoricalAccuracy()],
    )
    history = model.fit(x, y, batch_size=8, epochs=2, shuffle=False, verbose=0)
    print(len(model.trainable_weights), [f"{v:.4f}" for v in history.history["loss"]])


train()
for layer in model.layers:
    layer.trainable = layer in (tokens, middle)
tokens.enable_lora(2)
middle.enable_lora(4)
train()
before = model.predict(x, verbose=0)
model.save("adapters.keras")
loaded = keras.models.load_model("adapters.keras")
print(np.abs(loaded.predict(x, verbose=0) - before).max() < 1e-5)
model.quantize("int8")
after = model.predict(x, verbose=0)
print(np.abs(after - before).max() < 0.2, middle.dtype_policy.name)
