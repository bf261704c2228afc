"""Restores a module, its optimizer and the place in its data in the middle."""

import tensorflow as tf
from keras import optimizers


class Net(tf.Module):
    def __init__(self):
        super().__init__()
        self.w = None
        self.b = tf.Variable(tf.zeros(5), name="b")

    @tf.Module.with_name_scope
    def __call__(self, x):
        if self.w is None:
            self.w = tf.Variable(tf.random.stateless_normal((x.shape[-1], 5), (3, 4)))
        return tf.nn.softplus(x @ self.w + self.b)


def rows():
    x = tf.range(10.0)[:, None]
    y = x * 5.0 + tf.range(5.0)
    return tf.data.Dataset.from_tensor_slices({"x": x, "y": y}).repeat().batch(2)


def step(net, example, optimizer):
    with tf.GradientTape() as tape:
        loss = tf.reduce_mean(tf.abs(net(example["x"]) - example["y"]))
    variables = net.trainable_variables
    optimizer.apply_gradients(zip(tape.gradient(loss, variables), variables))
    return loss


for _ in range(2):
    net, optimizer = Net(), optimizers.Adam(0.1)
    net(tf.zeros((1, 1)))
    optimizer.build(net.trainable_variables)
    iterator, count = iter(rows()), tf.Variable(0)
    checkpoint = tf.train.Checkpoint(
        count=count, optimizer=optimizer, net=net, iterator=iterator
    )
    manager = tf.train.CheckpointManager(checkpoint, "checkpoints", max_to_keep=2)
    checkpoint.restore(manager.latest_checkpoint)
    for _ in range(4):
        loss = step(net, next(iterator), optimizer)
        if int(count.assign_add(1)) % 2 == 0:
            manager.save()
    print(int(count), int(optimizer.iterations), f"{float(loss):.3f}")
compiled = tf.function(step, reduce_retracing=True)
print(f"{float(compiled(net, next(iterator), optimizer)):.3f}")


class Served(tf.Module):
    def __init__(self, net):
        super().__init__()
        self.net = net

    @tf.function(input_signature=[tf.TensorSpec([None, 1], tf.float32, name="x")])
    def score(self, x):
        out = self.net(x)
        return {"sum": tf.reduce_sum(out, 1), "norm": tf.norm(out, axis=1)}


module = Served(net)
tf.saved_model.save(module, "served", signatures={"score": module.score})
served = tf.saved_model.load("served").signatures["score"](x=tf.ones((1, 1)))
print({name: f"{float(value[0]):.2f}" for name, value in sorted(served.items())})
