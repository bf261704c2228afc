"""Trains a small residual network and a small vision transformer."""

import keras
import keras_hub
import numpy as np

keras.utils.set_random_seed(0)
rng = np.random.RandomState(0)
x, y = rng.rand(8, 32, 32, 3).astype("float32"), rng.randint(0, 2, 8)
resnet = keras_hub.models.ResNetBackbone(
    input_conv_filters=[64],
    input_conv_kernel_sizes=[3],
    stackwise_num_filters=[64],
    stackwise_num_blocks=[1],
    stackwise_num_strides=[1],
    block_type="basic_block",
    image_shape=(32, 32, 3),
)
transformer = keras_hub.models.ViTBackbone(
    image_shape=(32, 32, 3),
    patch_size=(16, 16),
    num_layers=1,
    num_heads=2,
    hidden_dim=8,
    mlp_dim=16,
    dropout_rate=0.0,
)
for name, backbone, classifier in (
    ("ResNet", resnet, keras_hub.models.ResNetImageClassifier),
    ("ViT", transformer, keras_hub.models.ViTImageClassifier),
):
    model = classifier(backbone, num_classes=2)
    model.compile(
        keras.optimizers.SGD(1e-2),
        keras.losses.SparseCategoricalCrossentropy(from_logits=True),
        metrics=["accuracy"],
    )
    history = model.fit(x, y, batch_size=4, epochs=2, verbose=0, shuffle=False)
    print(name, [f"{v:.3f}" for v in history.history["loss"]])
