"""Trains a loop of its own and fit on two replicas, and saves checkpoints."""

import keras
import numpy as np
import tensorflow as tf
from keras import layers, losses, metrics, optimizers

cpu = tf.config.list_physical_devices("CPU")[0]
if not tf.config.get_logical_device_configuration(cpu):
    two = [tf.config.LogicalDeviceConfiguration()] * 2
    tf.config.set_logical_device_configuration(cpu, two)
keras.utils.set_random_seed(47)
strategy = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
x, y = np.random.rand(32, 6, 6, 1).astype("float32"), np.random.randint(0, 4, 32)
data = tf.data.Dataset.from_tensor_slices((x, y)).batch(8)


def new_model():
    return keras.Sequential([
        keras.Input((6, 6, 1)),
        layers.Conv2D(4, 3, activation="relu", kernel_regularizer="l2"),
        layers.MaxPooling2D(),
        layers.Flatten(),
        layers.Dense(4),
    ])


with strategy.scope():
    each = losses.SparseCategoricalCrossentropy(from_logits=True, reduction=None)
    mean, accuracy = metrics.Mean(), metrics.SparseCategoricalAccuracy()
    model, optimizer = new_model(), optimizers.Adam(1e-3)
    optimizer.build(model.trainable_variables)
    checkpoint = tf.train.Checkpoint(optimizer=optimizer, model=model)


def train_step(x, y):
    with tf.GradientTape() as tape:
        out = model(x, training=True)
        loss = tf.nn.compute_average_loss(each(y, out), global_batch_size=8)
        loss += tf.nn.scale_regularization_loss(tf.add_n(model.losses))
    weights = model.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, weights), weights))
    accuracy.update_state(y, out)
    return loss


@tf.function
def train(x, y):
    return strategy.reduce("sum", strategy.run(train_step, (x, y)), axis=None)


@tf.function
def test(x, y):
    strategy.run(lambda x, y: mean.update_state(each(y, model(x))), (x, y))


for _ in range(2):
    for batch in strategy.experimental_distribute_dataset(data):
        loss = train(*batch)
        test(*batch)
    checkpoint.save("checkpoints/replicas")
    print(
        f"{float(loss):.4f} {float(accuracy.result()):.3f} {float(mean.result()):.4f}"
    )
with strategy.scope():
    model = new_model()
    loss = losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(optimizers.SGD(0.01), loss, metrics=["accuracy"])
history = model.fit(data, epochs=2, verbose=0, validation_data=data.take(1))
for name, values in sorted(history.history.items()):
    print(name, [f"{value:.4f}" for value in values])
