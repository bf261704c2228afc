"""Metrics and logs that are not finite, in a training that is."""

import re

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.callbacks.training import compiled, fit, warns
from tests.support.warned import ours
from tfsafe.errors import NumericsError

LEVELS = ["watch", "domain", "full"]
MODES = {
    "eager": "run_eagerly=True",
    "graph": "jit_compile=False",
    "xla": "jit_compile=True",
    "several": "steps_per_execution=4",
}
# The second and the third batch have no positives.
FIT = """
import keras
import numpy as np

keras.utils.set_random_seed(1)

def recall(y, p):
    return tf.reduce_sum(y * tf.round(p)) / tf.reduce_sum(y)

x = np.random.randn(32, 3).astype("float32")
y = (x[:, :1] > 0).astype("float32")
y[8:24] = 0
model = keras.Sequential([keras.Input((3,)), keras.layers.Dense(1, "sigmoid")])
model.compile("adam", "binary_crossentropy", metrics=[recall], {mode})
history = model.fit(x, y, batch_size=8, shuffle=False, verbose=0, epochs=2).history
print(history["loss"], history["recall"], *[w.numpy() for w in model.weights])
"""
SAID = (
    "tfsafe: {} checked, finite but for measures. `RealDiv` at script.py:{} makes "
    "NaN, which is in {} alone: `--strict` explains it\n"
)


@pytest.mark.parametrize("checks", LEVELS)
@pytest.mark.parametrize("mode", MODES)
def test_a_metric_of_nan_neither_ends_nor_changes_a_training(
    mode, checks, script, capsys
):
    source = FIT.format(mode=MODES[mode])
    script(source, "--checks", "none")
    plain, _ = capsys.readouterr()
    script(source, "--checks", checks)
    ran, said = capsys.readouterr()
    assert ran == plain
    assert "[nan, nan]" in ran
    assert said.endswith(SAID.format("8 steps", 10, "`recall`"))


@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_under_strict_a_metric_of_nan_is_a_finding(mode, script):
    with pytest.raises(NumericsError, match="RealDiv"):
        script(FIT.format(mode=MODES[mode]), "--strict")


@pytest.mark.parametrize("mode", MODES)
def test_evaluate_tells_of_a_metric_of_nan(mode, script, capsys):
    source = FIT.format(mode=MODES[mode]).replace("model.fit(", "model.evaluate(")
    source = source.replace("shuffle=False, ", "").replace(", epochs=2).history", ")")
    source = source.replace('history["loss"], history["recall"]', "history")
    script(source)
    ran, said = capsys.readouterr()
    assert ", nan]" in ran
    assert said.endswith(SAID.format("4 steps", 10, "`recall`"))


STEP = """
import keras
import numpy as np

class Own(keras.Model):
    def __init__(self):
        super().__init__()
        self.dense = keras.layers.Dense(1)
        self.gap = keras.metrics.Mean("gap")

    def call(self, x):
        return self.dense(x)

    def train_step(self, data):
        x, y = data
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean((self(x) - y) ** 2)
            {inside}
        gradients = tape.gradient(loss, self.trainable_variables)
        self.optimizer.apply_gradients(zip(gradients, self.trainable_variables))
        self.gap.update_state(tf.reduce_sum(y) / tf.reduce_sum(y))
        return {{"loss": loss, {logs}}}

model = Own()
model.compile("sgd", {mode})
x = np.ones((8, 2), "float32")
model.fit(x, np.zeros((8, 1), "float32"), batch_size=4, verbose=0)
"""
LOGS = '"gap": self.gap.result(), "ratio": loss / tf.reduce_sum(y * 0)'


@pytest.mark.parametrize("mode", MODES)
def test_of_an_own_step_all_logs_but_losses_are_measures(mode, script, capsys):
    script(STEP.format(inside="pass", logs=LOGS, mode=MODES[mode]))
    said = capsys.readouterr().err
    assert said.endswith(SAID.format("2 steps", 23, "`gap`, `ratio`"))


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize(
    ("inside", "logs", "line"),
    [
        ("loss += tf.math.log(tf.reduce_sum(y) - 1.0)", LOGS, 20),
        ("pass", f'{LOGS}, "dice_loss": tf.math.log(tf.reduce_sum(y) - 1.0)', 24),
    ],
    ids=["trained", "reported"],
)
def test_a_loss_of_nan_beside_such_a_metric_is_the_finding(
    inside, logs, line, mode, script
):
    with pytest.raises(NumericsError) as caught:
        script(STEP.format(inside=inside, logs=logs, mode=MODES[mode]))
    first = caught.value.findings[0]
    assert (first.op_type, first.site.line) == ("Log", line)
    assert {each.op_type for each in caught.value.findings} == {"Log"}


LOOP = """
import keras

class Recall(keras.metrics.Metric):
    def __init__(self):
        super().__init__()
        self.total = self.add_weight(name="total", initializer="zeros")

    def update_state(self, y):
        self.total.assign_add(tf.reduce_sum(y) / tf.reduce_sum(y))

    def result(self):
        return self.total.value

w, recall = tf.Variable([1.0, 2.0]), {metric}

{decorator}
def step(y):
    with tf.GradientTape() as tape:
        loss = tf.reduce_sum(w * w)
    gradient = tape.gradient(loss, w)
    w.assign_sub(0.25 * gradient)
    recall.update_state({update})
    return loss

for _ in range(3):
    step(tf.zeros([2]))
print(w.numpy(), float(recall.result()))
"""
DECORATORS = {
    "eager": "",
    "graph": "@tf.function",
    "xla": "@tf.function(jit_compile=True)",
}
METRICS = {
    "own": ("Recall()", "y", 12),
    "Keras": ("keras.metrics.Mean()", "tf.reduce_sum(y) / tf.reduce_sum(y)", 25),
}


@pytest.mark.parametrize("checks", LEVELS)
@pytest.mark.parametrize("kind", METRICS)
@pytest.mark.parametrize("mode", DECORATORS)
def test_the_state_of_a_metric_in_a_loop_is_a_measure(
    mode, kind, checks, script, capsys
):
    metric, update, line = METRICS[kind]
    source = LOOP.format(metric=metric, update=update, decorator=DECORATORS[mode])
    script(source, "--checks", checks)
    ran, said = capsys.readouterr()
    assert ran == "[0.125 0.25 ] nan\n"
    expected = re.escape(SAID.format("3 steps", line, "NAMES"))
    assert re.search(expected.replace("NAMES", "(a )?variable.*"), said)


@pytest.mark.parametrize("mode", DECORATORS)
def test_another_variable_that_is_given_nan_is_a_finding(mode, script):
    source = LOOP.format(metric="Recall()", update="y", decorator=DECORATORS[mode])
    source = source.replace("(keras.metrics.Metric)", "(tf.Module)")
    source = source.replace(
        'self.add_weight(name="total", initializer="zeros")', "tf.Variable(0.0)"
    )
    with pytest.raises(NumericsError, match="RealDiv"):
        script(source)


BEGUN = """
import numpy as np

last = tf.Variable({begun})
w = tf.Variable(1.0)
for x in (1.0, 2.0):
    with tf.GradientTape() as tape:
        loss = (w * x) ** 2
    w.assign_sub(0.1 * tape.gradient(loss, w){used})
    buffer = tf.Variable(tf.fill([2], float("nan")))
    buffer[0].assign(loss)
print(np.round(w.numpy(), 2), np.isnan(last.numpy()).all(), buffer.numpy()[1])
"""


@pytest.mark.parametrize("begun", ["np.nan", "[float('nan')] * 2, trainable=False"])
def test_a_variable_without_a_value_yet_is_no_finding(begun, script, capsys):
    script(BEGUN.format(begun=begun, used=""))
    ran, said = capsys.readouterr()
    assert ran == "0.16 True nan\n"
    assert said == "tfsafe: 2 steps checked, all finite\n"


@pytest.mark.parametrize(
    ("begun", "used", "options"),
    [
        ("[np.nan, 1.0]", "", []),
        ("float('inf') - np.inf", "", []),
        ("np.nan", " + last", []),
        ("np.nan", "", ["--strict"]),
    ],
)
def test_a_variable_that_holds_nan_or_is_used_is_one(begun, used, options, script):
    with pytest.raises(NumericsError) as caught:
        script(BEGUN.format(begun=begun, used=used), *options)
    assert caught.value.findings[0].kind == "NaN"


def share(y, p):
    return tf.reduce_sum(y) / tf.reduce_sum(y)


DATA = np.ones((4, 3), "float32"), np.zeros((4, 1), "float32")


def test_a_checked_model_and_a_block_of_checks_refuse_a_metric_of_nan():
    with pytest.raises(NumericsError, match="RealDiv"):
        fit(tfsafe.checked(compiled("sgd", metrics=[share])), DATA)
    with tfsafe.debugging.check_numerics(), pytest.raises(NumericsError, match="Real"):
        fit(compiled("sgd", metrics=[share]), DATA)


@pytest.mark.parametrize("policy", ["raise", "skip", "stop"])
@pytest.mark.parametrize("mode", ["eager", "graph"])
def test_the_monitor_warns_once_of_a_metric_of_nan(mode, policy):
    def trained(*callbacks):
        model = compiled("sgd", metrics=[share], run_eagerly=mode == "eager")
        return fit(model, DATA, *callbacks), model.get_weights()

    history, weights = trained()
    monitor = tfsafe.NumericsMonitor(policy=policy)
    said = (
        r"`RealDiv` at test_measures.py:\d+ makes NaN, which is in `share` alone: loss"
    )
    with warns(said) as told:
        watched, watched_weights = trained(monitor)
    assert len(ours(told)) == 1
    assert monitor.nonfinite_steps == 0
    assert watched["loss"] == history["loss"]
    assert np.isnan(watched["share"]).all()
    for one, other in zip(weights, watched_weights, strict=True):
        np.testing.assert_array_equal(one, other)
