"""`stabilize.report`: which line, from what, to what, and why."""

import keras
import numpy as np
import pytest
import tensorflow as tf

from tfsafe.rewriting import Change, Report, stabilize

SPEC = tf.TensorSpec([None, 3], tf.float32)


def cross_entropy(logits):
    probs = tf.nn.softmax(logits)
    return -tf.math.log(probs)  # the line


def assert_names_the_line(change):
    assert change.rule == "log-of-softmax"
    assert change.op_type == "Log"
    assert change.dtype == "float32"
    assert change.site.path == __file__
    assert change.site.function == "cross_entropy"
    assert change.site.source == "return -tf.math.log(probs)  # the line"


@pytest.mark.parametrize(
    "target",
    [cross_entropy, tf.function(cross_entropy), stabilize(cross_entropy)],
    ids=["python", "tf.function", "stabilised"],
)
def test_each_rewrite_is_listed_with_its_line(target):
    report = stabilize.report(target, SPEC)
    assert isinstance(report, Report)
    (change,) = report
    assert isinstance(change, Change)
    assert_names_the_line(change)
    assert "softmax" in change.before
    assert "log_softmax" in change.after
    assert change.why


def test_the_table_says_it_all():
    text = str(stabilize.report(cross_entropy, SPEC))
    (change,) = stabilize.report(cross_entropy, SPEC)
    head, place, source, *rest = text.splitlines()
    assert head == "1 rewrite in `cross_entropy`."
    assert place == (
        f"log-of-softmax (float32): {__file__}:{change.site.line} in cross_entropy"
    )
    assert source.strip() == change.site.source
    for line, start in zip(
        rest, ("  before: ", "  after:  ", "  why:    "), strict=True
    ):
        assert line.startswith(start)
    assert max(map(len, rest)) <= 88


def test_it_says_so_when_nothing_is_rewritten():
    report = stabilize.report(tf.sin, SPEC)
    assert list(report) == []
    assert str(report) == "Nothing to rewrite: no rule fits a formula of `sin`."


def test_lines_are_found_through_calls_bodies_and_gradients():
    inner = tf.function(cross_entropy)

    def step(x):
        def body(i, total):
            return i + 1, total + tf.reduce_sum(inner(x))

        with tf.GradientTape() as tape:
            tape.watch(x)
            _, total = tf.while_loop(lambda i, _: i < 2, body, (0, 0.0))
        return tape.gradient(total, x)

    for change in stabilize.report(step, SPEC):
        assert_names_the_line(change)
    assert len(stabilize.report(step, SPEC)) == 1


def test_the_function_is_not_run_and_arrays_serve_as_tensors():
    ran = []

    def function(x, k=1):
        tf.py_function(lambda: ran.append(1), [], [])
        return tf.math.log(tf.nn.softmax(x)) * k

    assert len(stabilize.report(function, np.zeros([2, 3], np.float32), k=2)) == 1
    assert not ran


def test_the_choice_of_rules_shows():
    excluded = stabilize(cross_entropy, exclude="log-of-softmax")
    rules = [change.rule for change in stabilize.report(excluded, SPEC)]
    assert "log-of-softmax" not in rules


def test_methods_and_verified_functions_are_reported():
    class Head:
        @stabilize
        def method(self, x):
            return tf.math.log(tf.nn.softmax(x))

    head = Head()
    report = stabilize.report(head.method, SPEC)
    assert [change.rule for change in report] == ["log-of-softmax"]
    assert report.name == "method"
    report = stabilize.report(stabilize(cross_entropy, verify=True), SPEC)
    assert report.name == "cross_entropy"
    assert_names_the_line(report[0])


def test_a_change_without_a_line_names_its_operation():
    change = Change("a-rule", "f(x)", "g(x)", "x = 0", "Log", "inner/Log", "float16")
    assert str(change).splitlines()[0] == "a-rule (float16): operation `inner/Log`"


def test_a_loss_is_reported():
    def loss(y, p):
        return -tf.reduce_sum(y * tf.math.log(tf.nn.softmax(p)), -1)

    wrapped = keras.losses.Loss(name="mine")
    wrapped.call = loss
    batch = np.eye(3, dtype=np.float32), np.zeros([3, 3], np.float32)
    for target in (wrapped, stabilize(wrapped)):
        rules = [change.rule for change in stabilize.report(target, *batch)]
        assert "log-of-softmax" in rules


def test_a_model_is_reported_with_its_loss_or_without():
    def loss(y, p):
        return -tf.reduce_sum(y * tf.math.log(p), -1)

    model = keras.Sequential([keras.Input([4]), keras.layers.Dense(3, "softmax")])
    x, y = np.zeros([2, 4], np.float32), np.eye(2, 3, dtype=np.float32)
    assert len(stabilize.report(model, x)) == 0
    model.compile("sgd", loss)
    model.train_on_batch(x, y)
    weights = model.get_weights()
    for each in (model, stabilize(model)):
        report = stabilize.report(each, x, y=y)
        (change,) = [c for c in report if c.rule == "log-of-softmax"]
        assert change.site.function == "loss"
        assert report.name == "train_step"
    for before, after in zip(weights, model.get_weights(), strict=True):
        np.testing.assert_array_equal(before, after)


def test_a_class_is_refused():
    with pytest.raises(TypeError, match="not a class"):
        stabilize.report(Report)


def test_formulas_that_another_rewrite_hides_are_not_listed():
    def by_hand(x):
        e = tf.exp(x)
        return tf.math.log(e / tf.reduce_sum(e, -1, keepdims=True))

    (change,) = stabilize.report(by_hand, SPEC)
    assert change.op_type == "Log"
    # But where somebody reads them they are.
    both = stabilize.report(lambda x: (by_hand(x), tf.sqrt(tf.exp(x))), SPEC)
    assert {change.op_type for change in both} == {"Log", "Sqrt"}


def test_rewrites_are_listed_in_the_order_of_the_program():
    def program(x):
        first = tf.math.log(1.0 + tf.exp(x))
        second = tf.math.log(tf.nn.softmax(first))
        return tf.math.log(tf.sigmoid(second)), second

    names = [change.op_name for change in stabilize.report(program, SPEC)]
    assert names == ["Log", "Log_1", "Log_2"]


def test_arguments_of_the_function_may_be_called_target_and_args():
    def loss(args, target):
        return tf.reduce_sum(target - tf.math.log(tf.nn.softmax(args)))

    (change,) = stabilize.report(loss, args=SPEC, target=SPEC)
    assert change.rule == "log-of-softmax"
