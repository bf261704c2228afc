"""Errors of our own machinery: one warning each, and the program runs as without us."""

import contextlib

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe import _faults, _run
from tfsafe.debugging.checks import compiled, eager_session, switch, variables
from tfsafe.rewriting.engine import retrace
from tfsafe.rewriting.targets import keras_model
from tfsafe.rewriting.targets import switch as stable_switch

HOOKS = {
    "trace of a check": (compiled.CompiledCheck, "_watch"),
    "begin of a check": (compiled.CompiledCheck, "_watching"),
    "sum of a check": (compiled.finite_sum, "total"),
    "note of an operation": (eager_session.Session, "_note"),
    "check of a write": (eager_session.Session, "_check_write"),
    "check of gradients": (eager_session.Session, "check_gradients"),
    "note of a scaled loss": (eager_session.Session, "scaled"),
    "values before an update": (variables, "slot_of"),
    "check of a model": (switch, "check_model"),
    "making a stable function": (stable_switch, "stabilized"),
    "trace of a stable function": (retrace, "Planner"),
    "making a stable model": (stable_switch, "stabilize_model"),
    "making a stable step": (keras_model, "stabilized"),
}


def boom(*args, **kwargs):
    raise RuntimeError("injected")


def program():
    """Returns numbers of a program that runs what our hooks are for."""
    keras.utils.set_random_seed(0)
    weights = tf.Variable([[1.0], [2.0]])
    x = tf.constant([[1.0, -1.0], [0.5, 2.0]])

    def loss():
        return tf.reduce_mean(tf.math.log(tf.sigmoid(x @ weights)))

    @tf.function
    def step():
        with tf.GradientTape() as tape:
            value = loss()
        weights.assign_sub(tape.gradient(value, weights))
        return value

    found = [float(step()), float(step())]
    optimizer = keras.optimizers.LossScaleOptimizer(
        keras.optimizers.SGD(0.1), initial_scale=2.0
    )
    with tf.GradientTape() as tape:
        value = optimizer.scale_loss(loss())
    optimizer.apply([tape.gradient(value, weights)], [weights])
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    history = model.fit(x.numpy(), np.ones(2), epochs=2, verbose=0)
    return [*found, *weights.numpy().ravel(), *history.history["loss"]]


@pytest.fixture(scope="module")
def expected():
    return program()


@pytest.fixture
def switched():
    stable_switch.enable_stabilize()
    tfsafe.debugging.enable_check_numerics(checks="full")
    yield
    tfsafe.debugging.disable_check_numerics()
    stable_switch.disable_stabilize()


@pytest.mark.usefixtures("switched")
@pytest.mark.filterwarnings("default:tfsafe failed:RuntimeWarning")
@pytest.mark.parametrize("hook", HOOKS)
def test_a_fault_in_any_hook_leaves_the_program_unchanged(hook, expected, monkeypatch):
    monkeypatch.setattr(*HOOKS[hook], boom)
    with pytest.warns(RuntimeWarning, match="tfsafe failed in .* injected") as told:
        found = program()
    np.testing.assert_allclose(found, expected, rtol=1e-6)
    places = [
        str(each.message) for each in told if "tfsafe failed" in str(each.message)
    ]
    assert len(places) == len(set(places))
    assert not any("/tfsafe/" in each.filename for each in told)
    _faults.REPORTED.clear()


def test_a_fault_while_a_failure_is_looked_at_takes_the_step_once(monkeypatch):
    count = tf.Variable(0.0)

    @tfsafe.checked
    @tf.function
    def step(x):
        count.assign_add(1.0)
        return tf.math.log(x)

    monkeypatch.setattr(compiled.CompiledCheck, "_raise_if_failed", boom)
    with pytest.warns(RuntimeWarning, match="injected"):
        assert np.isnan(step(tf.constant(-1.0)))
    assert count.numpy() == 1.0
    assert np.isnan(step(tf.constant(-1.0)))
    assert count.numpy() == 2.0
    _faults.REPORTED.clear()


@pytest.mark.parametrize("error", [KeyError, ValueError])
@pytest.mark.parametrize("is_first", [True, False])
@pytest.mark.parametrize("way", ["checked", "full", "switch", "stable switch"])
def test_an_error_of_the_program_is_raised_once(way, is_first, error):
    traces = []

    @tf.function
    def step(x, fails):
        traces.append(fails)
        if fails:
            raise error("of the program")
        return tf.math.log(x)

    x = tf.constant(1.0)
    with contextlib.ExitStack() as stack:
        if way == "stable switch":
            stable_switch.enable_stabilize()
            stack.callback(stable_switch.disable_stabilize)
        if way == "switch":
            stack.enter_context(tfsafe.debugging.check_numerics())
        checks = {"checked": "watch", "full": "full"}
        run = tfsafe.checked(step, checks=checks[way]) if way in checks else step
        if not is_first:
            run(x, False)
        with pytest.raises(error, match="of the program"):
            run(x, True)
    assert traces.count(True) == 1


def test_a_fault_while_the_program_handles_its_own_error_is_contained(monkeypatch):
    @tfsafe.checked
    @tf.function
    def step(x, fails):
        if fails:
            raise KeyError("of the program")
        return tf.math.log(x)

    try:
        step(tf.constant(1.0), True)
    except KeyError:
        monkeypatch.setattr(compiled.CompiledCheck, "_watch", boom)
        with pytest.warns(RuntimeWarning, match="injected"):
            assert step(tf.constant(1.0), False).numpy() == 0.0
    _faults.REPORTED.clear()


def test_errors_of_the_program_are_its_own():
    @tfsafe.checked
    @tf.function
    def step(x):
        raise KeyError("of the program")

    with pytest.raises(KeyError, match="of the program"):
        step(tf.constant(1.0))


@pytest.mark.parametrize(
    ("owner", "name", "source", "task"),
    [
        (_run, "_rewrites_by_line", "print('ran')", "rewritten formulas"),
        (tfsafe.NumericsError, "to_html", "{finding}", "writing the report"),
        (_run, "_show", "{finding}", "showing the finding"),
        (stable_switch, "enable_stabilize", "print('ran')", "stable forms on"),
        (tfsafe.debugging, "enable_check_numerics", "print('ran')", "the checks on"),
    ],
)
def test_run_ends_as_the_program_does(
    owner, name, source, task, monkeypatch, tmp_path, capsys
):
    monkeypatch.setattr(owner, name, boom)
    for attribute in ("argv", "path", "excepthook"):
        monkeypatch.setattr(_run.sys, attribute, getattr(_run.sys, attribute))
    monkeypatch.setitem(_run.sys.modules, "__main__", _run.sys.modules["__main__"])
    path = tmp_path / "script.py"
    finding = "import tfsafe; raise tfsafe.NumericsError('found')"
    path.write_text(source.format(finding=finding))
    options = ["--stabilize", "--report", str(tmp_path / "page.html"), str(path)]
    try:
        with pytest.warns(RuntimeWarning, match=f"{task}.*injected"):  # noqa: PT031
            if "finding" in source:
                with pytest.raises(tfsafe.NumericsError) as raised:
                    _run.run(options)
                _run.sys.excepthook(raised.type, raised.value, raised.tb)
                assert "found" in capsys.readouterr().err
            else:
                _run.run(options)
                assert capsys.readouterr().out == "ran\n"
    finally:
        tfsafe.debugging.disable_check_numerics()
        stable_switch.disable_stabilize()
        _faults.REPORTED.clear()
