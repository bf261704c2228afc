"""Features put on one another: ways x orders x modes x levels.

Each cell has two formulas: one that `stabilize` repairs must give the right value, and
no finding; one that it cannot repair must give a finding with the operation and the
user's line.
"""

import contextlib
import itertools
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterator
from typing import Any

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tests.support.pairwise import pairwise
from tests.support.warned import ours
from tfsafe import checked, disable_stabilize, enable_stabilize, stabilize
from tfsafe.debugging import (
    check_numerics,
    disable_check_numerics,
    enable_check_numerics as enable_checks,
)
from tfsafe.debugging.checks.traced.watched_call import Body

LEVELS = ("watch", "domain", "full")
X = np.array([[0.0, -200.0], [3.0, 5.0]], np.float32)
# The logarithm of the softmax of X.
EXPECTED = np.float32(X - np.logaddexp(*X.astype(np.float64).T)[:, np.newaxis])


def repairable(x):
    return tf.math.log(tf.nn.softmax(x))


def hopeless(x):
    return tf.math.log(tf.reduce_sum(x)) + tf.nn.softmax(x)  # hopeless


def _line() -> int:
    with open(__file__, encoding="utf-8") as file:
        lines = file.read().splitlines()
    (number,) = [i for i, line in enumerate(lines, 1) if line.endswith("  # hopeless")]
    return number


def assert_names_the_line(error: tfsafe.NumericsError) -> None:
    finding = error.findings[0]
    assert finding.op_type == "Log", finding
    assert finding.site is not None
    assert (finding.site.path, finding.site.line) == (__file__, _line()), finding


@contextlib.contextmanager
def enabled_checks(level: str) -> Iterator[None]:
    enable_checks(checks=level)
    try:
        yield
    finally:
        disable_check_numerics()


@contextlib.contextmanager
def enabled_stabilize() -> Iterator[None]:
    enable_stabilize()
    try:
        yield
    finally:
        disable_stabilize()


Run = Callable[[Any, Any, str], Any]


def _within(*contexts: Callable[[str], Any], wrap: Callable[..., Any]) -> Run:
    def run(function: Any, x: Any, level: str) -> Any:
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context(level))
            return wrap(function)(x)

    return run


def _unchanged(function: Any) -> Any:
    return function


# Each takes a Python function or a `tf.function`.
WAYS: dict[str, Run] = {
    "checked(stabilize)": lambda f, x, level: checked(stabilize(f), checks=level)(x),
    "stabilize(checked)": lambda f, x, level: stabilize(checked(f, checks=level))(x),
    "tf.function(checked(stabilize))": lambda f, x, level: tf.function(
        checked(stabilize(f), checks=level)
    )(x),
    "tf.function(stabilize(checked))": lambda f, x, level: tf.function(
        stabilize(checked(f, checks=level))
    )(x),
    "check_numerics": _within(
        lambda level: check_numerics(checks=level), wrap=stabilize
    ),
    "enable_check_numerics": _within(enabled_checks, wrap=stabilize),
    "checks, switch": _within(
        enabled_checks, lambda _: enabled_stabilize(), wrap=tf.function
    ),
    "switch, checks": _within(
        lambda _: enabled_stabilize(), enabled_checks, wrap=tf.function
    ),
    "switch, checked": lambda f, x, level: _within(
        lambda _: enabled_stabilize(),
        wrap=lambda g: checked(tf.function(g), checks=level),
    )(f, x, level),
    "checked, verified": lambda f, x, level: checked(
        stabilize(f, verify=True), checks=level
    )(x),
}
MODES = {
    "eager": _unchanged,
    "graph": tf.function,
    "xla": lambda f: tf.function(f, jit_compile=True),
}


def compositions() -> list[Any]:
    cells = [
        (way, mode, level)
        for mode, way, level in itertools.product(MODES, WAYS, LEVELS)
        # The levels differ in one place: all of them for the first two ways.
        if (level == "full" or mode != "xla") and (level != "domain" or "(" in way)
    ]
    return [
        pytest.param(WAYS[way], MODES[mode], level, id=f"{way}-{mode}-{level}")
        for way, mode, level in (cells[i] for i in pairwise(cells))
    ]


@pytest.mark.parametrize(("way", "mode", "level"), compositions())
def test_a_formula_that_can_be_repaired_gives_its_value(way, mode, level):
    result = way(mode(repairable), tf.constant(X), level)
    assert_close(result, EXPECTED)


@pytest.mark.parametrize(("way", "mode", "level"), compositions())
def test_a_formula_that_cannot_be_repaired_names_its_line(way, mode, level):
    with pytest.raises(tfsafe.NumericsError) as caught:
        way(mode(hopeless), tf.constant(X), level)
    assert_names_the_line(caught.value)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("jit_compile", [None, True], ids=["graph", "xla"])
@pytest.mark.parametrize("order", ["stabilize inside", "stabilize around"])
def test_a_stabilised_function_inside_another_one(order, jit_compile, level):
    def wrap(function: Any) -> Any:
        if order == "stabilize inside":
            return tf.function(stabilize(function), jit_compile=jit_compile)
        return stabilize(tf.function(stabilize(function), jit_compile=jit_compile))

    result = checked(wrap(repairable), checks=level)(tf.constant(X))
    assert_close(result, EXPECTED)
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(wrap(hopeless), checks=level)(tf.constant(X))
    assert_names_the_line(caught.value)


class Steps:
    @tf.function(jit_compile=True)
    @checked
    def step(self, x):
        return hopeless(x)


def test_a_checked_method_of_a_compiled_function_is_checked():
    with pytest.raises(tfsafe.NumericsError) as caught:
        Steps().step(tf.constant(X))
    assert_names_the_line(caught.value)


def test_a_checked_helper_of_an_unchecked_function_warns_once():
    helper = checked(hopeless)

    @tf.function
    def outer(x):
        return helper(x) + helper(2 * x)

    with pytest.warns(RuntimeWarning, match="`hopeless` is called while") as caught:
        assert np.isnan(outer(tf.constant(X))).any()
    assert len(ours(caught)) == 1
    outermost = checked(tf.function(lambda x: checked(hopeless)(x)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(tfsafe.NumericsError):
            outermost(tf.constant(X))


def test_a_stabilised_function_of_a_checked_one_is_checked_without_a_warning():
    function = stabilize(tf.function(checked(hopeless)))
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert np.isfinite(function(tf.constant([1.0, 2.0]))).all()
    with pytest.raises(tfsafe.NumericsError) as caught:
        function(tf.constant([-1.0, -2.0]))
    assert_names_the_line(caught.value)


def test_a_lambda_layer_takes_a_checked_function():
    layer = keras.layers.Lambda(checked(lambda x: 2 * x))
    np.testing.assert_array_equal(layer(BATCH), 2 * BATCH)


def test_a_wrapper_of_another_kind_is_stabilised_inside():
    outside = stabilize(checked(repairable, checks="full"))
    assert type(outside) is type(checked(repairable))


class Naive(keras.losses.Loss):
    def __init__(self, is_hopeless: bool):
        super().__init__()
        self._is_hopeless = is_hopeless

    def call(self, y_true, y_pred):
        loss = -tf.reduce_sum(y_true * repairable(y_pred * 200.0), -1)
        return (
            loss + tf.reduce_sum(hopeless(y_pred - 9.0)) if self._is_hopeless else loss
        )


BATCH = np.array([[0.0, -1.0], [1.0, 2.0]], np.float32)
LABELS = np.array([[0.0, 1.0], [1.0, 0.0]], np.float32)


def made(
    is_hopeless: bool,
    *,
    loss: Callable[[Any], Any] = _unchanged,
    optimizer: Callable[[Any], Any] = _unchanged,
    **options: Any,
) -> keras.Model:
    model = keras.Sequential([
        keras.Input([2]),
        keras.layers.Dense(2, kernel_initializer="identity"),
    ])
    model.compile(
        optimizer(keras.optimizers.SGD(0.001)), loss(Naive(is_hopeless)), **options
    )
    return model


def monitor(level: str) -> list[Any]:
    return [tfsafe.callbacks.NumericsMonitor(checks=level)]


def _fit(model: keras.Model, callbacks: Any = ()) -> float:
    history = model.fit(
        BATCH, LABELS, batch_size=2, verbose=0, callbacks=list(callbacks)
    )
    return history.history["loss"][0]


def _fit_within(*contexts: Callable[[str], Any], **parts: Any) -> Callable[..., float]:
    wrap = parts.pop("model", _unchanged)
    callbacks = parts.pop("callbacks", lambda _: ())

    def run(is_hopeless: bool, level: str, **options: Any) -> float:
        with contextlib.ExitStack() as stack:
            for context in contexts:
                stack.enter_context(context(level))
            return _fit(wrap(made(is_hopeless, **parts, **options)), callbacks(level))

    return run


FITS: dict[str, Callable[..., float]] = {
    "checked(stabilize)": lambda h, level, **options: _fit(
        checked(stabilize(made(h, **options)), checks=level)
    ),
    "stabilize(checked)": lambda h, level, **options: _fit(
        stabilize(checked(made(h, **options), checks=level))
    ),
    "stabilised loss": lambda h, level, **options: _fit(
        checked(made(h, loss=stabilize, **options), checks=level)
    ),
    "check_numerics": _fit_within(
        lambda level: check_numerics(checks=level), model=stabilize
    ),
    "check_numerics, loss": _fit_within(
        lambda level: check_numerics(checks=level), loss=stabilize
    ),
    "enable_check_numerics": _fit_within(enabled_checks, model=stabilize),
    "checks, switch": _fit_within(enabled_checks, lambda _: enabled_stabilize()),
    "switch, checks": _fit_within(lambda _: enabled_stabilize(), enabled_checks),
    "monitor": _fit_within(model=stabilize, callbacks=monitor),
    "monitor, loss": _fit_within(loss=stabilize, callbacks=monitor),
    "monitor, switch": _fit_within(lambda _: enabled_stabilize(), callbacks=monitor),
}
# One step of the naive loss: -log softmax at the labels, of logits 200 apart.
FIT_LOSS = 200.0


FIT_MODES: dict[str, dict[str, bool]] = {
    "graph": {"jit_compile": False},
    "xla": {"jit_compile": True},
    "eager": {"run_eagerly": True},
}


def fits() -> list[Any]:
    """Returns each way with a graph, and by turns in another mode or at "watch"."""
    others = itertools.cycle([("watch", "graph"), ("full", "xla"), ("full", "eager")])
    return [
        pytest.param(way, level, FIT_MODES[mode], id=f"{way}-{level}-{mode}")
        for way in FITS
        for level, mode in [("full", "graph"), next(others)]
    ]


@pytest.mark.parametrize(("way", "level", "options"), fits())
def test_fit(way, options, level):
    loss = FITS[way](False, level, **options)
    assert loss == FIT_LOSS
    with pytest.raises(tfsafe.NumericsError) as caught:
        FITS[way](True, level, **options)
    assert_names_the_line(caught.value)


@pytest.mark.parametrize("way", ["checked(stabilize)", "switch, checks"])
def test_a_safe_optimizer_inside_lets_the_step_through(way):
    """Its policy acts before the checks: what it replaces is no failure."""
    options = {"optimizer": tfsafe.SafeOptimizer, "jit_compile": False}
    assert FITS[way](False, "full", **options) == FIT_LOSS


@pytest.mark.parametrize("wrap", [stabilize, lambda model: checked(stabilize(model))])
def test_retain_gradients_on_top(wrap):
    model = wrap(made(False))
    dense = model.layers[0]
    with tfsafe.debugging.retain_gradients(dense) as kept:
        with tf.GradientTape() as tape:
            loss = model.loss(LABELS, model(BATCH))
        tape.gradient(loss, dense.kernel)
    assert len(kept) == 1


def spec() -> tf.TensorSpec:
    return tf.TensorSpec([None, 2], tf.float32)


@pytest.mark.parametrize("level", LEVELS)
@pytest.mark.parametrize("mode", ["graph", "xla"])
@pytest.mark.parametrize("wrap", [_unchanged, stabilize], ids=["plain", "stabilize"])
def test_a_concrete_function_holds_its_checks(wrap, mode, level):
    written = tf.Variable(1.0)

    def step(x):
        y = hopeless(x)
        written.assign(tf.reduce_sum(y))
        return y

    function = checked(wrap(MODES[mode](step)), checks=level)
    concrete = function.get_concrete_function(spec())
    fine = tf.constant([[1.0, 2.0]])
    assert_close(concrete(fine), hopeless(fine))
    before = written.numpy()
    with pytest.raises(tf.errors.InvalidArgumentError, match="NaN or Inf in") as caught:
        concrete(tf.constant(X))
    assert written.numpy() == before
    assert (f"Log at {__file__}:{_line()}" in str(caught.value)) == (level != "watch")


LOAD = """
import sys
import tensorflow as tf
loaded = tf.saved_model.load(sys.argv[1])
assert "tfsafe" not in sys.modules
x = tf.Variable([[0.0, -200.0], [3.0, 5.0]])
call = loaded.signatures.get("serving_default", loaded)
try:
    with tf.GradientTape() as tape:
        y = call(x=x.read_value())
    y = y if tf.is_tensor(y) else y["output_0"]
    print(*y.numpy().ravel())
except tf.errors.InvalidArgumentError as error:
    print("NaN or Inf in" in str(error))
"""


def _loaded(path: Any) -> str:
    done = subprocess.run(
        [sys.executable, "-c", LOAD, str(path)], capture_output=True, text=True
    )
    assert not done.returncode, done.stderr
    return done.stdout.strip()


class Saved(tf.Module):
    def __init__(self, function: Any):
        super().__init__()
        self.weight = tf.Variable(1.0)
        self._function = function

    @tf.function
    def __call__(self, x):
        return self._function(x) * self.weight


def test_a_saved_model_under_the_switch_is_called_in_plain_tensorflow(tmp_path):
    module = Saved(repairable)
    with enabled_stabilize():
        module(tf.constant(X))
        module(tf.constant(X[:1]))
        tf.saved_model.save(module, tmp_path)
    found = np.array(_loaded(tmp_path).split(), np.float32).reshape(2, 2)
    assert_close(found, EXPECTED)


@pytest.mark.parametrize("is_hopeless", [False, True])
def test_a_saved_checked_function_checks_in_plain_tensorflow(tmp_path, is_hopeless):
    function = hopeless if is_hopeless else repairable
    concrete = checked(stabilize(function)).get_concrete_function(
        tf.TensorSpec([None, 2], tf.float32, name="x")
    )
    tf.saved_model.save(tf.Module(), tmp_path, signatures=concrete)
    if is_hopeless:
        assert _loaded(tmp_path) == "True"
        return
    found = np.array(_loaded(tmp_path).split(), np.float32).reshape(2, 2)
    assert_close(found, EXPECTED)


@pytest.mark.parametrize("level", ["watch", "full"])
@pytest.mark.parametrize("wrap", [_unchanged, stabilize], ids=["plain", "stabilize"])
def test_a_wrong_dtype_raises_what_tensorflow_raises(wrap, level):
    concrete = tf.function(repairable).get_concrete_function(spec())
    with pytest.raises(tf.errors.InvalidArgumentError, match=r"to be (a )?float"):
        checked(wrap(concrete), checks=level)(tf.constant([[1, 2]]))


@pytest.mark.parametrize(
    "wrap", [_unchanged, checked, stabilize, lambda f: checked(stabilize(f))]
)
def test_a_second_optimizer_in_one_function_raises_what_tensorflow_raises(wrap):
    optimizers = [keras.optimizers.Adam(), keras.optimizers.Adam()]
    weights = [tf.Variable(1.0), tf.Variable(1.0)]

    @wrap
    @tf.function
    def step(x, index):
        with tf.GradientTape() as tape:
            loss = tf.square(weights[index] * x)
        gradient = tape.gradient(loss, weights[index])
        optimizers[index].apply([gradient], [weights[index]])
        return loss

    step(tf.constant(1.0), 0)
    with pytest.raises(ValueError, match=r"singleton tf\.Variable"):
        step(tf.constant(1.0), 1)
    step(tf.constant(1.0), 0)


def test_the_warning_of_retracing_names_the_users_function(caplog):
    function = checked(tf.function(lambda x, n: x * n))
    tf.get_logger().propagate = True
    with caplog.at_level("WARNING", logger="tensorflow"):
        for number in range(8):
            function(tf.constant(1.0), number)
    messages = [each.message for each in caplog.records if "retracing" in each.message]
    assert messages
    assert all("<lambda>" in each and "Check" not in each for each in messages)


def test_the_steps_of_many_models_are_counted_apart_and_have_the_users_names(
    caplog, monkeypatch
):
    class Own(keras.Model):
        def __init__(self):
            super().__init__()
            self.dense = keras.layers.Dense(1)

        def call(self, x):
            return self.dense(x)

        def train_step(self, data):
            return super().train_step(data)

    made, begin = [], Body.__init__

    def noted(body, *arguments):
        begin(body, *arguments)
        made.append(body)

    monkeypatch.setattr(Body, "__init__", noted)
    x, y = np.ones((4, 3), "float32"), np.ones((4, 1), "float32")
    tf.get_logger().propagate = True
    with caplog.at_level("WARNING", logger="tensorflow"):
        for steps in (1, 1, 1, 1, 1, 1, 2):
            model = checked(Own())
            model.compile("sgd", "mse", steps_per_execution=steps)
            model.fit(x, y, verbose=0)
            model.predict(x, verbose=0)
    assert not [each.message for each in caplog.records if "retracing" in each.message]
    shown = set(map(repr, made))
    assert any("Own.train_step" in each for each in shown)
    assert any("predict_step" in each for each in shown)
    assert all("train_step" in each or "predict_step" in each for each in shown)


def test_a_place_is_found_in_a_graph_without_a_name():
    graph = tf.Graph()
    with graph.as_default():
        x = tf.compat.v1.placeholder(tf.float32)
        tf.compat.v1.gradients(tf.sqrt(x), x)
    gradient = next(op for op in graph.get_operations() if op.type == "SqrtGrad")
    assert tfsafe.graph.locate(gradient, [graph, tf.Graph()]).forward_op == "Sqrt"


def test_a_gradient_through_both_is_taken_without_a_fault():
    """The rewritten gradient reads a variable, which has no upstream gradient."""
    scale = tf.Variable(0.3, dtype=tf.float64)

    @tf.function
    def half_log_det():
        kernel = tf.eye(3, dtype=tf.float64) * tf.exp(scale) + 0.1
        factor = tf.linalg.cholesky(kernel)
        return tf.reduce_sum(tf.math.log(tf.linalg.diag_part(factor)))

    def slope(function):
        with tf.GradientTape() as tape:
            value = function()
        return float(tape.gradient(value, scale))

    with warnings.catch_warnings():
        warnings.simplefilter("error", RuntimeWarning)
        both = tfsafe.checked(tfsafe.stabilize(half_log_det), checks="full")
        assert_close(slope(both), slope(half_log_det))
