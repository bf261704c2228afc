"""Batch normalisation: Keras' numbers on good batches, and untouched by bad ones."""

import types

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.support import forks, modes, oracle
from tests.support.oracle import assert_close
from tfsafe import callbacks, layers
from tfsafe.optimizers import SafeOptimizer

GENERATOR = np.random.default_rng(0)
X = GENERATOR.normal(2.0, 3.0, (4, 5, 3)).astype("float32")
MASK = GENERATOR.random((4, 5)) < 0.6
NEW = "renorm" in keras.layers.BatchNormalization().get_config()
renorm = pytest.param(
    {"renorm": True},
    marks=pytest.mark.skipif(not NEW, reason="Keras has no such option"),
)


def _train(layer, mode):
    def run(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = layer(x, training=True, mask=mask)
        sources = [x, *(weight.value for weight in layer.trainable_variables)]
        return value, tape.gradient(value, sources, tf.sin(3 * x))

    return modes.compile_for(mode, run)


def _statistics(layer):
    return [weight.numpy() for weight in layer.non_trainable_variables]


def _built(package, shape, **options):
    layer = package.BatchNormalization(**options)
    layer.build(shape)
    return layer


@pytest.mark.parametrize(
    "options",
    [
        {},
        {"axis": 1, "center": False},
        {"scale": False, "momentum": 0.5, "epsilon": 0.1},
        renorm,
    ],
)
def test_finite_batches_give_what_keras_gives(options, mode):
    results = []
    for package in (layers, keras.layers):
        layer = _built(package, X.shape, **options)
        train = _train(layer, mode)
        train(tf.constant(X), None)
        value, gradients = train(tf.constant(X), None)
        inference = modes.compile_for(mode, layer)(tf.constant(X))
        results.append([value, *gradients, inference, *_statistics(layer)])
    for ours, theirs in zip(*results, strict=True):
        assert_close(ours, theirs, 7, why="sums over the batch", scale=1.0)


def test_a_mask_leaves_positions_out_of_the_statistics(mode):
    layer, other = (_built(layers, X.shape, momentum=0.5) for _ in range(2))
    hidden = np.where(MASK[..., None], X, np.nan).astype("float32")

    def run(x, mask):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = layer(x, training=True, mask=mask)
            loss = tf.reduce_sum(tf.where(mask[..., None], value, 0.0) ** 3)
        gradients = tape.gradient(loss, [x, layer.gamma.value, layer.beta.value])
        return value, gradients

    value, (in_x, in_gamma, in_beta) = modes.compile_for(mode, run)(
        tf.constant(hidden), tf.constant(MASK)
    )
    only = tf.constant(X[MASK][:, None])
    with tf.GradientTape() as tape:
        tape.watch(only)
        true = other(only, training=True)
        loss = tf.reduce_sum(true**3)
    truths = tape.gradient(loss, [only, other.gamma.value, other.beta.value])
    assert_close(value.numpy()[MASK], true[:, 0], scale=0.2)
    assert_close(in_x.numpy()[MASK], truths[0][:, 0], scale=1.0)
    np.testing.assert_array_equal(in_x.numpy()[~MASK], 0)
    assert_close(in_gamma, truths[1])
    assert_close(in_beta, truths[2])
    for ours, theirs in zip(_statistics(layer), _statistics(other), strict=True):
        assert_close(ours, theirs)


@pytest.mark.parametrize("bad", [np.nan, np.inf, 3e38])
@pytest.mark.parametrize("options", [{}, renorm])
def test_a_nonfinite_batch_touches_no_statistic(bad, options, mode):
    layer = _built(layers, X.shape, momentum=0.5, **options)
    train = _train(layer, mode)
    train(tf.constant(X), None)
    before = _statistics(layer)
    spoilt = X.copy()
    spoilt[0, 0, 1], spoilt[1, 0, 1] = bad, -bad
    value, _ = train(tf.constant(spoilt), None)
    for old, new in zip(before, _statistics(layer), strict=True):
        np.testing.assert_array_equal(old, new)
    if not options:
        # Loud in its channel, and silent in the others.
        assert np.isnan(value[..., 1]).all()
        assert np.isfinite(value.numpy()[..., [0, 2]]).all()
    train(tf.constant(X), None)
    assert not np.array_equal(before[0], layer.moving_mean.numpy())
    assert np.isfinite(layer(tf.constant(X))).all()


@pytest.mark.parametrize("options", [{}, renorm])
def test_a_batch_of_nothing_touches_no_statistic(options, mode):
    layer = _built(layers, X.shape, momentum=0.5, **options)
    train = _train(layer, mode)
    train(tf.constant(X), None)
    before = _statistics(layer)
    value, gradients = train(tf.constant(X), tf.zeros([4, 5], tf.bool))
    for old, new in zip(before, _statistics(layer), strict=True):
        np.testing.assert_array_equal(old, new)
    if not options:
        # Normalised by the moving statistics, which are constants here.
        assert_close(value, layer(tf.constant(X)))
        slope = np.sin(3 * X) / np.sqrt(before[1] + 1e-3)
        assert_close(gradients[0], slope)


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_an_empty_batch_touches_no_statistic(mode):
    layer = _built(layers, (None, 3), momentum=0.5)
    train = _train(layer, mode)
    train(tf.constant(X[0]), None)
    before = _statistics(layer)
    value, gradients = train(tf.zeros([0, 3]), None)
    assert value.shape == (0, 3)
    assert all(np.isfinite(gradient).all() for gradient in gradients)
    for old, new in zip(before, _statistics(layer), strict=True):
        np.testing.assert_array_equal(old, new)


def test_a_large_mean_costs_nothing_in_training_or_inference(mode):
    x = np.float32(1e6) + np.arange(8, dtype="float32").reshape(8, 1) / 8
    layer = _built(layers, x.shape, epsilon=1e-12, momentum=0.0)
    value = modes.compile_for(mode, lambda x: layer(x, training=True))(tf.constant(x))
    exact = x.astype("float64")
    true = (exact - exact.mean()) / exact.std()
    assert_close(value, true)
    # As far as float32 holds the mean itself.
    shift = abs(layer.moving_mean.numpy() - exact.mean()) / exact.std()
    inference = modes.compile_for(mode, layer)(tf.constant(x))
    assert np.all(abs(inference - true) <= shift + 1e-7 + 1e-6 * abs(true))


@pytest.mark.parametrize("policy", ["mixed_float16", "mixed_bfloat16", "float16"])
def test_half_precision_is_normalised_in_float32(policy, mode):
    layer = _built(layers, (2, 1), dtype=policy)
    x = tf.constant([[6e4], [-6e4]], layer.compute_dtype)
    value = modes.compile_for(mode, lambda x: layer(x, training=True))(x)
    assert value.dtype.name == layer.compute_dtype
    np.testing.assert_array_equal(tf.cast(value, tf.float32), [[1], [-1]])


def test_a_frozen_layer_is_in_inference():
    layer = _built(layers, X.shape)
    layer.trainable = False
    assert_close(layer(X, training=True), X / np.sqrt(1.001))


def test_the_gradient_of_the_gradient_agrees_with_differences():
    layer = _built(layers, (4, 2), dtype="float64", epsilon=0.1)
    x = tf.constant(GENERATOR.normal(size=(4, 2)))

    def slope(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(tf.sin(2 * layer(x, training=True)))
        return tape.gradient(loss, x)

    oracle.assert_slopes_are_differences(slope, [x], 3.3e6)


def test_a_mask_of_another_rank_is_refused():
    layer = _built(layers, X.shape)
    with pytest.raises(ValueError, match="`mask` must have one axis less"):
        layer(X, training=True, mask=tf.ones([4, 5, 3], tf.bool))


# The monitor says once which step was left out.
@pytest.mark.filterwarnings("ignore:Step:RuntimeWarning")
@pytest.mark.parametrize("commit", [False, True])
def test_training_through_one_nonfinite_batch_ends_well(commit):
    x = GENERATOR.normal(size=(32, 3)).astype("float32")
    x[9, 0] = np.nan
    model = keras.Sequential([
        keras.Input((3,)),
        keras.layers.Dense(4),
        layers.BatchNormalization(momentum=0.5),
        keras.layers.Dense(1),
    ])
    model.compile(SafeOptimizer(keras.optimizers.SGD(0.1), policy="skip"), "mse")
    watch = [callbacks.NumericsMonitor()] if commit else []
    model.fit(x, x[:, 1:2], batch_size=8, epochs=2, verbose=0, callbacks=watch)
    assert all(np.isfinite(weight).all() for weight in model.get_weights())
    assert np.isfinite(model.predict(x[:8], verbose=0)).all()


def test_one_replica_needs_no_communication(mode):
    alone, shared = (
        _train(_built(layers, X.shape, synchronized=flag), mode)(tf.constant(X), None)
        for flag in (False, True)
    )
    np.testing.assert_array_equal(alone[0], shared[0])


def test_two_replicas_with_one_batch_each_normalise_as_one(monkeypatch):
    train = _train(_built(layers, X.shape, synchronized=True), "eager")
    true = train(tf.constant(X), tf.constant(MASK))
    twins = types.SimpleNamespace(
        num_replicas_in_sync=2, all_reduce=lambda _, local: 2 * local
    )
    monkeypatch.setattr(tf.distribute, "get_replica_context", lambda: twins)
    got = train(tf.constant(X), tf.constant(MASK))
    for ours, theirs in zip([got[0], *got[1]], [true[0], *true[1]], strict=True):
        assert_close(ours, theirs)


PROGRAM = """
import keras, numpy as np, tensorflow as tf
cpu = tf.config.list_physical_devices("CPU")[0]
two = [tf.config.LogicalDeviceConfiguration()] * 2
tf.config.set_logical_device_configuration(cpu, two)
from tests.support.oracle import assert_close
from tfsafe import layers

x = np.random.default_rng(0).normal(3, 2, (8, 2)).astype("float32")
x[:4] *= 5

def run(strategy, synchronized):
    with strategy.scope():
        layer = layers.BatchNormalization(momentum=0.5, synchronized=synchronized)
        layer.build((None, 2))

    def step(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = layer(x, training=True)
            loss = tf.reduce_sum(value ** 3)
        return value, tape.gradient(loss, x)

    data = tf.data.Dataset.from_tensor_slices(x).batch(8)
    data = iter(strategy.experimental_distribute_dataset(data))
    train = tf.function(lambda x: strategy.run(step, (x,)), autograph=False)
    value, slope = train(next(data))
    join = lambda v: np.concatenate(strategy.experimental_local_results(v))
    moving = layer.moving_mean.numpy(), layer.moving_variance.numpy()
    return join(value), join(slope), *moving

two = tf.distribute.MirroredStrategy(["CPU:0", "CPU:1"])
one = tf.distribute.get_strategy()
truth, shared, alone = run(one, True), run(two, True), run(two, False)
for a, b in zip(truth, shared):
    assert_close(a, b, 7, why="sums of sums of replicas", scale=np.abs(b).max())
assert np.abs(truth[0] - alone[0]).max() > 0.1
x[0, 0] = np.nan
for synchronized in (True, False):
    *_, mean, variance = run(two, synchronized)
    assert np.isfinite(mean).all() and np.isfinite(variance).all()
    if synchronized:
        assert (mean == 0).all() and (variance == 1).all()
print("the same")
"""


@pytest.mark.slow
def test_two_replicas_combine_their_statistics_where_asked():
    result = forks.run("-c", PROGRAM)
    assert result.stdout.strip().endswith("the same"), result.stderr
