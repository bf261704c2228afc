"""The switch behind `python -m tfsafe run --stabilize`."""

import gc
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tfsafe.rewriting import stabilize
from tfsafe.rewriting.targets import switch

LOGITS = tf.constant([[0.0, -200.0]])
X = np.array([[300.0, -1.0], [-2.0, 400.0]], np.float32)
Y = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)


@pytest.fixture
def switched():
    switch.enable_stabilize()
    yield
    switch.disable_stabilize()


def gradient(x):
    with tf.GradientTape() as tape:
        tape.watch(x)
        value = tf.reduce_sum(tf.math.log(tf.nn.softmax(x))[:, 1])
    return tape.gradient(value, x)


def naive(y_true, y_pred):
    return -tf.reduce_sum(y_true * tf.math.log(y_pred), -1)


def model():
    keras.utils.set_random_seed(0)
    made = keras.Sequential([keras.Input([2]), keras.layers.Dense(2, "softmax")])
    made.compile("sgd", naive, jit_compile=False)
    return made


def trained(made):
    made.fit(X, Y, verbose=0)
    return made.get_weights()[0]


@pytest.mark.usefixtures("switched")
def test_a_function_with_a_signature_is_exported_without_a_call(tmp_path):
    signature = [tf.TensorSpec([1, 2])]
    function = tf.function(gradient, input_signature=signature)
    archive = keras.export.ExportArchive()
    # Keras refuses a function that has no trace.
    archive.add_endpoint("slope", function)
    archive.write_out(str(tmp_path / "served"))
    served = tf.saved_model.load(str(tmp_path / "served"))
    assert_close(served.slope(LOGITS), [[-1.0, 1.0]])


def test_functions_and_models_are_stable_while_it_is_on():
    function, made = tf.function(gradient), model()
    assert np.isnan(function(LOGITS)).all()
    methods = type(function).__call__, keras.Model.fit
    switch.enable_stabilize()
    switch.enable_stabilize()
    try:
        assert_close(function(LOGITS), [[-1.0, 1.0]])
        concrete = function.get_concrete_function(LOGITS)
        assert_close(concrete(LOGITS), [[-1.0, 1.0]])
        outer = tf.function(lambda x: function(x) * 2.0)
        assert_close(outer(LOGITS), [[-2.0, 2.0]])
        assert np.isfinite(trained(made)).all()
    finally:
        switch.disable_stabilize()
    assert (type(function).__call__, keras.Model.fit) == methods
    assert np.isnan(function(LOGITS)).all()
    assert not hasattr(made.train_step, "function")


@pytest.mark.usefixtures("switched")
def test_a_function_that_cannot_be_read_runs_as_written_and_those_in_it_are_stable():
    inner = tf.function(gradient)

    @tf.function
    def outer(logits, labels, x):
        # Its loop is a function of TensorFlow 1.
        loss = tf.nn.ctc_loss(labels, logits, [2, 2], [4, 4], False, blank_index=-1)
        return loss, inner(x)

    logits = tf.random.stateless_normal([2, 4, 3], [2, 2])
    labels = tf.constant([[0, 1], [1, 1]])
    expected = tf.nn.ctc_loss(labels, logits, [2, 2], [4, 4], False, blank_index=-1)
    with pytest.warns(RuntimeWarning, match="`outer` is not rewritten"):
        loss, slope = outer(logits, labels, LOGITS)
    assert_close(loss, expected)
    assert_close(slope, [[-1.0, 1.0]])


@pytest.mark.usefixtures("switched")
def test_what_it_does_not_rewrite():
    stable = stabilize(gradient)
    assert_close(stable(LOGITS), [[-1.0, 1.0]])
    # Eager code, and functions that run eagerly.
    assert np.isnan(gradient(LOGITS)).all()
    tf.config.run_functions_eagerly(True)
    try:
        assert np.isnan(tf.function(gradient)(LOGITS)).all()
    finally:
        tf.config.run_functions_eagerly(False)


@pytest.mark.usefixtures("switched")
def test_a_function_is_forgotten_when_its_owner_is():
    function = tf.function(lambda x: x + 1.0)
    function(LOGITS)
    known = weakref.ref(function)
    del function
    gc.collect()
    assert known() is None


@pytest.mark.usefixtures("switched")
def test_the_traces_of_the_stable_form_are_counted_and_shown():
    function = tf.function(lambda x, *, k=1: tf.math.log(tf.sigmoid(x)) * k)
    assert function.experimental_get_tracing_count() == 0
    for shape in ([2], [2], [3]):
        function(tf.ones(shape))
    function(tf.ones([3]), k=2)
    assert function.experimental_get_tracing_count() == 3
    shown = function.pretty_printed_concrete_signatures(verbose=False)
    assert shown.count("k: Literal") == 3


def test_it_works_together_with_the_checks(switched):
    tfsafe.debugging.enable_check_numerics()
    try:
        assert_close(tf.function(gradient)(LOGITS), [[-1.0, 1.0]])
        assert np.isfinite(trained(model())).all()
        with pytest.raises(tfsafe.NumericsError):
            tf.function(tf.math.log)(tf.constant(-1.0))
    finally:
        tfsafe.debugging.disable_check_numerics()


def test_what_others_put_around_the_methods_stays():
    function = tf.function(gradient)
    kind = type(function)
    original = kind.__call__
    switch.enable_stabilize()
    ours = kind.__call__
    kind.__call__ = lambda self, *args: ours(self, *args)
    theirs = kind.__call__
    switch.disable_stabilize()
    try:
        assert kind.__call__ is theirs
        assert np.isnan(function(LOGITS)).all()
    finally:
        kind.__call__ = original
