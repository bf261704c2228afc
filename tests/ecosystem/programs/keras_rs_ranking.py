"""Trains a recommender with crossed features and ranking losses."""

import keras
import keras_rs
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
users, items = rng.randint(0, 10, (32, 1)), rng.randint(0, 12, (32, 1))
stars = rng.randint(1, 6, (32, 1)).astype("float32")


class Crossed(keras.Model):
    def __init__(self):
        super().__init__()
        self.users = keras.layers.Embedding(10, 4)
        self.items = keras.layers.Embedding(12, 4)
        self.cross = keras_rs.layers.FeatureCross(2)
        self.out = keras.layers.Dense(1)

    def call(self, x):
        x = keras.ops.concatenate([self.users(x[0]), self.items(x[1])], -1)
        x = keras.ops.squeeze(x, 1)
        return self.out(self.cross(x, x))


model = Crossed()
model.compile(keras.optimizers.Adagrad(0.1), "mse", metrics=["mae"])
history = model.fit((users, items), stars, epochs=2, verbose=0, shuffle=False)
print("cross", [f"{v:.4f}" for v in history.history["loss"]])

x = rng.randn(16, 5, 3).astype("float32")
relevance = rng.randint(0, 3, (16, 5)).astype("float32")
for name in (
    "PairwiseHingeLoss",
    "PairwiseLogisticLoss",
    "PairwiseSoftZeroOneLoss",
    "PairwiseMeanSquaredError",
    "ListMLELoss",
):
    if not hasattr(keras_rs.losses, name):
        continue
    keras.utils.set_random_seed(0)
    inputs = keras.Input((5, 3))
    scores = keras.layers.Reshape((5,))(keras.layers.Dense(1)(inputs))
    model = keras.Model(inputs, scores)
    model.compile(
        keras.optimizers.SGD(0.05),
        getattr(keras_rs.losses, name)(),
        metrics=[keras_rs.metrics.NDCG(k=3), keras_rs.metrics.MeanReciprocalRank()],
    )
    history = model.fit(x, relevance, batch_size=8, epochs=2, verbose=0, shuffle=False)
    for key, values in sorted(history.history.items()):
        print(name, key, [f"{v:.4f}" for v in values])
retrieval = keras_rs.layers.BruteForceRetrieval(
    candidate_embeddings=rng.randn(12, 4).astype("float32"), k=3
)
print(np.asarray(retrieval(rng.randn(2, 4).astype("float32"))[1]).tolist())
