"""Searches hyperparameters of a model, and of a search of one's own."""

import keras
import keras_tuner
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
x, y = rng.randn(40, 4).astype("float32"), rng.randint(0, 2, 40)


def build(hp):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([
        keras.Input([4]),
        keras.layers.Dense(hp.Int("units", 2, 6, step=2), activation="relu"),
        keras.layers.Dense(1, activation="sigmoid"),
    ])
    rate = hp.Choice("rate", [1e-2, 1e-3])
    model.compile(keras.optimizers.Adam(rate), "binary_crossentropy")
    return model


tuners = {
    "random": keras_tuner.RandomSearch(
        build, "val_loss", max_trials=3, seed=0, directory="random"
    ),
    "hyperband": keras_tuner.Hyperband(
        build, "val_loss", max_epochs=3, seed=0, directory="hyperband"
    ),
}
for name, tuner in tuners.items():
    tuner.search(
        x, y, epochs=2, validation_data=(x, y), verbose=0, batch_size=8, shuffle=False
    )
    best = tuner.get_best_hyperparameters()[0]
    print(name, best.get("units"), best.get("rate"))
    score = tuner.oracle.get_best_trials()[0].score
    print(f"{score:.4f}")
    (model,) = tuner.get_best_models()
    print(f"{model.evaluate(x, y, verbose=0):.4f}")
