"""Routes tokens to experts with top-k gates, a capacity and a balancing loss."""

import keras
import tensorflow as tf
from keras import layers, losses, metrics, optimizers


@keras.saving.register_keras_serializable("field")
class Experts(layers.Layer):
    def __init__(self, experts=4, width=8, k=2, **kwargs):
        super().__init__(**kwargs)
        self.experts, self.width, self.k = experts, width, k

    def build(self, shape):
        d = shape[-1]
        self.gate = self.add_weight(shape=(d, self.experts), name="gate")
        self.up = self.add_weight(shape=(self.experts, d, self.width), name="up")
        self.down = self.add_weight(shape=(self.experts, self.width, d), name="down")

    def call(self, x):
        tokens = tf.reshape(x, [-1, tf.shape(x)[-1]])
        probabilities = tf.nn.softmax(tokens @ tf.convert_to_tensor(self.gate))
        weights, chosen = tf.math.top_k(probabilities, self.k)
        weights = weights / tf.reduce_sum(weights, -1, keepdims=True)
        mask = tf.one_hot(chosen, self.experts)
        dispatch = tf.reduce_sum(mask * weights[..., None], 1)
        h = tf.nn.silu(tf.einsum("td,edw->tew", tokens, self.up))
        out = tf.einsum("tew,ewd,te->td", h, self.down, dispatch)
        load = tf.reduce_mean(tf.reduce_max(mask, 1), 0)
        importance = tf.reduce_mean(probabilities, 0)
        self.add_loss(0.01 * self.experts * tf.reduce_sum(load * importance))
        return tf.reshape(out, tf.shape(x))

    def get_config(self):
        own = {"experts": self.experts, "width": self.width, "k": self.k}
        return {**super().get_config(), **own}


inputs = keras.Input((5, 6))
h = layers.LayerNormalization()(inputs)
h = layers.Add()([h, Experts()(h)])
outputs = layers.Dense(3)(layers.GlobalAveragePooling1D()(h))
model = keras.Model(inputs, outputs)
for i, w in enumerate(model.trainable_variables):
    w.assign(w * 0 + 0.4 * tf.random.stateless_normal(w.shape, (i, 9)))
model.compile(
    optimizer=optimizers.AdamW(0.01, global_clipnorm=1.0),
    loss=losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=[
        metrics.SparseCategoricalAccuracy(),
        metrics.SparseTopKCategoricalAccuracy(2),
    ],
)
x = tf.random.stateless_normal((24, 5, 6), (2, 1))
y = tf.argmax(tf.reduce_mean(x, 1)[:, :3], 1)
history = model.fit(x, y, batch_size=8, epochs=3, shuffle=False, verbose=0)
print(*(f"{v:.4f}" for v in history.history["loss"]))
model.save("experts.keras")
again = keras.models.load_model("experts.keras")
print(*(f"{float(v):.4f}" for v in again.evaluate(x, y, verbose=0)))
