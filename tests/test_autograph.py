"""AutoGraph converts the functions of users, and none of ours."""

import inspect
import pathlib
import subprocess
import sys

import keras
import pytest
import tensorflow as tf
from tensorflow.python.autograph.impl import api

import tfsafe
from tests.support.oracle import assert_close
from tfsafe import _compat, layers, losses, metrics, ops, optimizers

PACKAGE = str(pathlib.Path(tfsafe.__file__).parent)


@pytest.fixture
def converted(monkeypatch):
    """The functions that AutoGraph converts from now on."""
    found, convert = [], api._convert_actual

    def note(entity, context):
        found.append(entity)
        return convert(entity, context)

    monkeypatch.setattr(api, "_convert_actual", note)
    return found


def _halves(x):
    """Of numbers above 1; AutoGraph alone makes a branch of this `if`."""
    if tf.reduce_max(x) > 1:
        return x / 2
    return x


def _optimizer():
    optimizer = optimizers.SafeOptimizer(
        keras.optimizers.SGD(1.0), global_clipnorm=9.0, outlier_threshold=6.0
    )
    weight = keras.Variable([1.0])
    optimizer.build([weight])

    def step(x):
        optimizer.apply([x], [weight])
        return weight.value

    return step


def _metric():
    metric = metrics.Mean()

    def update(x):
        metric.update_state(x)
        return metric.result()

    return update


def _layer():
    layer = layers.BatchNormalization()
    layer.build([None, 1])
    return lambda x: layer(x[:, None], training=True)


DOORS = {
    "an op": lambda: ops.log,
    "a loss": lambda: lambda x: losses.MeanSquaredLogarithmicError()(x, x),
    "a loss function": lambda: lambda x: losses.poisson(x[None], x[None]),
    "StableCrossEntropy": lambda: (
        lambda x: losses.StableCrossEntropy(labels="binary")(x, x)
    ),
    "a layer": _layer,
    "a metric": _metric,
    "an optimizer": _optimizer,
    "a regularizer": lambda: (
        lambda x: tfsafe.regularizers.OrthogonalRegularizer()(x[:, None])
    ),
    "a stabilised function": lambda: tfsafe.stabilize(_halves),
    "a checked function": lambda: tfsafe.checked(_halves),
}


@pytest.mark.parametrize("door", DOORS)
@pytest.mark.filterwarnings("ignore:.* is called while:RuntimeWarning")
def test_none_of_our_functions_is_converted(door, converted):
    function = DOORS[door]()

    def outer(x):
        return function(x)

    tf.function(outer).get_concrete_function(tf.ones([1]))
    files = {inspect.getfile(each) for each in converted}
    assert __file__ in files
    # What `tf.function` converts at a caller's request has no rules.
    ours = [each for each in converted if inspect.getfile(each).startswith(PACKAGE)]
    assert [each.__qualname__ for each in ours] == (
        ["TracedCall.__init__.<locals>.call"] if "stabilised" in door else []
    )


class _Loss(losses.MeanSquaredError):
    def call(self, y_true, y_pred):
        return super().call(y_true, _halves(y_pred))


class _Dice(losses.Dice):
    def call(self, y_true, y_pred):
        return tf.reshape(_halves(y_pred - y_true), [-1])


def _spectral(x):
    return ops.spectral_function(tf.linalg.diag(x), _halves)


class _Counter:
    @tfsafe.checked
    def step(self, x):
        return _halves(x)


class _Model(keras.Model):
    def call(self, x):
        return _halves(x)


GIVEN = {
    "where_apply": lambda: lambda x: ops.where_apply(x > 0, _halves, x, 0.0),
    "otherwise": lambda: lambda x: ops.where_apply(x < 0, tf.exp, x, _halves),
    "spectral_function": lambda: lambda x: tf.linalg.diag_part(_spectral(x)),
    "singular_value_function": lambda: (
        lambda x: ops.singular_value_function(x[None], _halves)[0]
    ),
    "checked": lambda: tfsafe.checked(_halves),
    "checked, a method": lambda: _Counter().step,
    "stabilize": lambda: tfsafe.stabilize(_halves),
    "stabilize, a function": lambda: tfsafe.stabilize(tf.function(_halves)),
    "stabilize, a model": lambda: tfsafe.stabilize(_Model()).call,
    "stabilize, a model inside": lambda: tfsafe.stabilize(
        tf.function(tfsafe.stabilize(_Model()).call)
    ),
    "a loss": lambda: lambda x: _Loss(reduction="none")(0 * x[:, None], x[:, None]),
    "a loss of regions": lambda: lambda x: _Dice(reduction="none")(0 * x, x),
}


@pytest.mark.parametrize("given", GIVEN)
@pytest.mark.filterwarnings("ignore:.* is called while:RuntimeWarning")
# Keras traces models without AutoGraph; after that they run as written.
@pytest.mark.filterwarnings("ignore:Calls of the model:RuntimeWarning")
def test_functions_that_we_are_given_are_converted(given):
    function = GIVEN[given]()

    @tf.function
    def outer(x):
        return function(x)

    scale = 2 if given == "a loss" else 1
    halved, same = outer(tf.constant([4.0])), outer(tf.constant([1.0]))
    assert_close(halved, [2.0**scale])
    assert_close(same, [1.0])


def test_the_gradients_of_a_function_that_we_are_given_are_converted():
    def root(x):
        value = 2 * x
        for _ in tf.range(2):
            value = (value + x / value) / 2
        return value

    @tf.function
    def slope(x):
        with tf.GradientTape() as outer:
            outer.watch(x)
            with tf.GradientTape() as tape:
                tape.watch(x)
                y = ops.spectral_function(x, root)
            first = tape.gradient(y, x)
        return first, outer.gradient(first, x)

    first, second = slope(tf.constant([[4.0]]))
    x = tf.constant(4.0)
    with tf.GradientTape() as outer:
        outer.watch(x)
        with tf.GradientTape() as tape:
            tape.watch(x)
            y = root(x)
        expected = tape.gradient(y, x)
    assert_close(first, [[float(expected)]])
    expected = outer.gradient(expected, x)
    assert_close(second, [[float(expected)]])


def test_a_function_stays_itself_where_autograph_is_off():
    found = []

    def look():
        found.append(_compat.as_converted(_halves))
        return tf.zeros([])

    look()
    tf.function(look, autograph=False)()
    assert found == [_halves] * 2
    tf.function(look)()
    assert found[2] is not _halves


def test_rules_of_others_stay_and_ours_is_there_once():
    from tensorflow.python.autograph.core import config

    before = config.CONVERSION_RULES
    _compat.exempt_from_autograph()
    assert before == config.CONVERSION_RULES
    assert [str(rule) for rule in before].count("DoNotConvert rule for tfsafe") == 1
    assert any(str(rule) == "DoNotConvert rule for keras" for rule in before)


@pytest.mark.parametrize(
    ("module", "name"),
    [
        ("tensorflow.python.autograph.core.config", "CONVERSION_RULES"),
        ("tensorflow.python.autograph.core.ag_ctx", "control_status_ctx"),
        ("tensorflow.python.autograph.impl.api", "converted_call"),
    ],
)
def test_nothing_is_exempt_where_a_private_name_is_missing(module, name):
    # What the user's functions are converted with: all of it or nothing.
    lines = f"""
import importlib
module = importlib.import_module({module!r})
from tensorflow.python.autograph.core import config
before = getattr(config, "CONVERSION_RULES")
del module.{name}
import tfsafe
import tfsafe.ops
from tfsafe import _compat
assert getattr(config, "CONVERSION_RULES", before) == before
if {name!r} != "CONVERSION_RULES":
    assert _compat.as_converted(print) is print
"""
    subprocess.run([sys.executable, "-c", lines], check=True)
