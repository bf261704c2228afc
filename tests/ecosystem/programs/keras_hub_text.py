"""Trains a small BERT classifier and generates with a small GPT-2."""

import keras
import keras_hub
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
backbone = keras_hub.models.BertBackbone(
    vocabulary_size=50,
    num_layers=2,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=16,
    max_sequence_length=12,
    dropout=0.0,
)
classifier = keras_hub.models.BertTextClassifier(
    backbone, num_classes=3, preprocessor=None, dropout=0.0
)
mask = np.ones((16, 12), "int32")
mask[:, 9:] = 0
features = {
    "token_ids": rng.randint(1, 50, (16, 12)),
    "segment_ids": np.zeros((16, 12), "int32"),
    "padding_mask": mask,
}
labels = rng.randint(0, 3, 16)
classifier.compile(
    keras.optimizers.AdamW(1e-3),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    metrics=["accuracy"],
)
history = classifier.fit(
    features, labels, batch_size=8, epochs=2, verbose=0, shuffle=False
)
print("BERT", [f"{v:.4f}" for v in history.history["loss"]])

backbone = keras_hub.models.GPT2Backbone(
    vocabulary_size=30,
    num_layers=1,
    num_heads=2,
    hidden_dim=8,
    intermediate_dim=16,
    max_sequence_length=10,
    dropout=0.0,
)
language = keras_hub.models.GPT2CausalLM(backbone, preprocessor=None)
language.compile(
    keras.optimizers.Adam(1e-2),
    keras.losses.SparseCategoricalCrossentropy(from_logits=True),
    sampler="greedy",
)
tokens = rng.randint(1, 30, (8, 10))
inputs = {"token_ids": tokens, "padding_mask": np.ones((8, 10), "int32")}
history = language.fit(
    inputs, np.roll(tokens, -1, 1), batch_size=4, epochs=2, verbose=0, shuffle=False
)
print("GPT-2", [f"{v:.4f}" for v in history.history["loss"]])
prompt = {"token_ids": tokens[:2], "padding_mask": np.ones((2, 10), "int32")}
prompt["padding_mask"][:, 4:] = 0
print(np.asarray(language.generate(prompt, stop_token_ids=None)["token_ids"]).tolist())
for layer in (
    keras_hub.layers.TransformerDecoder(16, 2),
    keras_hub.layers.FNetEncoder(16),
):
    out = layer(keras.ops.ones((2, 5, 8)) * 0.1)
    print(type(layer).__name__, np.isfinite(out).all())
