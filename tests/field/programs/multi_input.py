"""Joins a title, a number and two outputs with loss weights."""

import keras
import numpy as np
from keras import layers, losses, optimizers

keras.utils.set_random_seed(11)
title = np.random.randint(1, 8, (12, 5))
tags = np.random.rand(12, 3).astype("float32")
title_in, tags_in = keras.Input((5,), dtype="int32"), keras.Input((3,))
h = layers.GlobalAveragePooling1D()(layers.Embedding(8, 4)(title_in))
h = layers.Concatenate()([h, tags_in])
priority = layers.Dense(1, name="priority")(h)
department = layers.Dense(3, name="department")(h)
model = keras.Model(
    [title_in, tags_in], {"priority": priority, "department": department}
)
model.compile(
    optimizers.Adam(0.01),
    loss={
        "priority": losses.BinaryCrossentropy(from_logits=True),
        "department": losses.SparseCategoricalCrossentropy(from_logits=True),
    },
    loss_weights={"priority": 1.0, "department": 0.2},
)
y = {"priority": tags[:, :1].round(), "department": title[:, 0] % 3}
history = model.fit([title, tags], y, batch_size=4, epochs=2, shuffle=False, verbose=0)
for name, values in sorted(history.history.items()):
    print(name, [f"{value:.4f}" for value in values])
