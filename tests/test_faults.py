"""Errors of our own machinery: one warning each, and the program runs as without us."""

import ast
import contextlib
import functools
import importlib
import os
import pathlib
import signal
import tempfile
import warnings
import weakref

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tests.support.oracle import assert_close
from tests.support.warned import ours
from tfsafe import (
    _after_import,
    _compat,
    _faults,
    _keras_scope,
    _run,
    _saving,
    _uncaught,
)
from tfsafe.callbacks import _monitor
from tfsafe.debugging.checks import enclosing
from tfsafe.debugging.checks.eager import session
from tfsafe.debugging.checks.traced import compiled
from tfsafe.debugging.entry import script, switch
from tfsafe.debugging.state import variables
from tfsafe.rewriting.engine import retrace, tape_recording
from tfsafe.rewriting.reports import lines
from tfsafe.rewriting.targets import keras_model, replicas, switch as stable_switch

HOOKS = {
    "call of a function": (switch, "is_outermost"),
    "choice of a check": (switch, "_is_users"),
    "operations of a thread": (switch.Switch, "session"),
    "every operation": (session.Session, "_follow"),
    "begin of an update": (session.Session, "updating"),
    "begin of a gradient": (session.Session, "differentiating"),
    "choice of a stable form": (stable_switch, "_is_naive"),
    "begin of a tape": (tape_recording.Recording, "starts"),
    "end of a tape": (tape_recording.Recording, "stops"),
    "answer of a tape": (tape_recording.Recording, "answered"),
    "trace of a check": (compiled.CompiledCheck, "_watch"),
    "begin of a check": (compiled.CompiledCheck, "_watching"),
    "sum of a check": (compiled.deferred_writes, "finite_sum"),
    "note of an operation": (session.Session, "_note"),
    "check of a write": (session.Session, "_check_write"),
    "check of gradients": (session.Session, "check_gradients"),
    "note of a scaled loss": (session.Session, "scaled"),
    "values before an update": (variables, "slot_of"),
    "check of a model": (switch, "check_model"),
    "making a stable function": (stable_switch, "stabilized"),
    "trace of a stable function": (retrace, "Planner"),
    "making a stable model": (stable_switch, "stabilize_model"),
    "making a stable step": (keras_model, "stabilized"),
    "call of a stable model": (keras_model.ModelCall, "_prepared"),
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
    assert_close(found, expected, dtype="float32")
    places = [
        str(each.message) for each in told if "tfsafe failed" in str(each.message)
    ]
    assert len(places) == len(set(places))
    assert not any("/tfsafe/" in each.filename for each in ours(told))
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


def late(*_):
    raise TimeoutError("late")


class Limit:
    def __call__(self, *_):
        late()

    def reached(self, *_):
        late()


@pytest.mark.parametrize(
    "handler",
    [late, functools.partial(late, 1), Limit(), Limit().reached],
    ids=["function", "partial", "object", "method"],
)
def test_an_error_of_a_handler_of_a_signal_is_the_programs(handler, monkeypatch):
    def stopped(*_):
        signal.raise_signal(signal.SIGUSR1)

    taken = []
    monkeypatch.setattr(session.Session, "_follow", stopped)
    before = signal.signal(signal.SIGUSR1, handler)
    try:
        with (
            tfsafe.check_numerics(),
            pytest.raises(TimeoutError, match="late"),
        ):
            tf.constant(1.0) + 1.0
        with pytest.raises(TimeoutError, match="late"):
            _faults.or_plain("a task", stopped, lambda: taken.append(1))
    finally:
        signal.signal(signal.SIGUSR1, before)
    assert not taken


@pytest.mark.parametrize(
    ("owner", "name", "source", "task"),
    [
        (lines, "rewrites_by_line", "print('ran')", "rewritten formulas"),
        (tfsafe.NumericsError, "to_html", "{finding}", "writing the report"),
        (_uncaught, "_show", "{finding}", "showing the finding"),
        (stable_switch, "enable_stabilize", "print('ran')", "stable forms on"),
        (tfsafe.debugging, "enable_check_numerics", "print('ran')", "the checks on"),
        (_compat, "require_tensorflow_backend", "print('ran')", "tfsafe on"),
        (_run, "_is_without_eager", "print('ran')", "the report at the end"),
        (_after_import.AfterImport, "install", "print('ran')", "watching imports"),
        (_uncaught, "_saved", "{finding}", "writing the capsule"),
        (script.Results, "look", "print('ran')", "the check of the results"),
        (_uncaught, "_of_the_script", "{finding}", "preparing the end"),
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
    files = ["--report", tmp_path / "page.html", "--capsule", tmp_path / "nan.zip"]
    options = ["--stabilize", *map(str, files), str(path)]
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


# The functions and classes that put our code into the calls of a program.
INSTALL = {"Patch", "add_eager_callback", "meta_path", "AfterImport", "excepthook"}
# Modules that use them for whatever the program runs, and where this file injects.
INJECTED = {
    "_after_import",
    "_keras_scope",
    "_run",
    "_saving",
    "_uncaught",
    "callbacks/_step_checks",
    "debugging/checks/eager/session",
    "debugging/checks/enclosing",
    "debugging/entry/switch",
    "debugging/models/model",
    "rewriting/engine/tape_recording",
    "rewriting/targets/keras_model",
    "rewriting/targets/replicas",
    "rewriting/targets/switch",
}
# Modules that use them for objects that the program has given to tfsafe.
ASKED_FOR = {
    "__main__",
    "_compat/_execution",
    "callbacks/_commit",
    "debugging/inspection/plot",
    "debugging/inspection/retain",
    "optimizers/_counters",
}


def test_every_hook_is_known_here():
    package, found = pathlib.Path(tfsafe.__file__).parent, set()
    for path in package.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text())):
            name = getattr(node, "attr", getattr(node, "id", None))
            if name in INSTALL and (
                name != "excepthook" or isinstance(node.ctx, ast.Store)
            ):
                found.add(path.relative_to(package).with_suffix("").as_posix())
    assert found - {"_patching"} == INJECTED | ASKED_FOR


@contextlib.contextmanager
def one_warning():
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        yield
    faults = [str(w.message) for w in told if "tfsafe failed" in str(w.message)]
    assert len(faults) == 1
    assert "injected" in faults[0]
    _faults.REPORTED.clear()


def test_a_fault_in_the_choice_of_a_check_runs_the_function(monkeypatch):
    inner = tfsafe.checked(tf.math.log)
    monkeypatch.setattr(enclosing, "_check", boom)
    with one_warning():
        assert np.isnan(tf.function(lambda x: inner(x))(tf.constant(-1.0)))


def test_a_fault_in_a_look_up_finds_the_class_of_keras(monkeypatch):
    monkeypatch.setattr(_keras_scope, "_counterparts", boom)
    with one_warning(), tfsafe.keras_scope():
        found = keras.losses.get("MeanSquaredError")
    assert type(found) is keras.losses.MeanSquaredError


def test_a_fault_in_the_watch_of_imports_lets_them_pass(monkeypatch):
    monkeypatch.setattr(_after_import.AfterImport, "_watch", boom)
    monkeypatch.delitem(_run.sys.modules, "colorsys", raising=False)
    watch = _after_import.AfterImport(["colorsys"], boom)
    watch.install()
    try:
        with one_warning():
            importlib.import_module("colorsys")
    finally:
        watch.remove()
    monkeypatch.setattr(_compat, "load_on_demand", boom)
    with one_warning():
        _saving.register_on_demand()


@pytest.mark.parametrize("broken", ["dup", "TemporaryFile", "stderr"])
def test_an_import_needs_no_standard_error(broken, monkeypatch):
    def closed(*args):
        raise OSError

    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL", raising=False)
    if broken == "stderr":
        monkeypatch.setattr(_run.sys, "stderr", None)
        _uncaught.say("nowhere")
    else:
        monkeypatch.setattr(os if broken == "dup" else tempfile, broken, closed)
    with _after_import.quiet():
        entered = True
    assert entered
    monkeypatch.delenv("TF_CPP_MIN_LOG_LEVEL")


def _trained(**options):
    keras.utils.set_random_seed(0)
    model = keras.Sequential([keras.Input([2]), keras.layers.Dense(1)])
    model.compile("sgd", "mse", jit_compile=False)
    x = np.ones((4, 2), "float32")
    history = model.fit(x, x[:, :1], epochs=2, verbose=0, **options)
    return history.history["loss"]


def test_a_fault_in_a_callback_lets_the_training_go_on(monkeypatch):
    monkeypatch.setattr(_monitor.NumericsMonitor, "_report", boom)
    expected = _trained()
    with pytest.warns(RuntimeWarning, match="callback of .* injected") as told:
        found = _trained(callbacks=[tfsafe.callbacks.NumericsMonitor()])
    assert_close(found, expected, dtype="float32")
    # One in a batch, one in an epoch.
    assert sum("injected" in str(w.message) for w in told) <= 2
    _faults.REPORTED.clear()


def test_a_fault_in_a_stable_form_on_replicas_trains_as_written(monkeypatch):
    with tf.distribute.OneDeviceStrategy("CPU:0").scope():
        expected = _trained()
        monkeypatch.setattr(replicas, "stabilized", boom)
        stable_switch.enable_stabilize()
        try:
            with one_warning():
                found = _trained()
        finally:
            stable_switch.disable_stabilize()
    assert_close(found, expected, dtype="float32")


def test_a_fault_while_traces_are_saved_saves_what_was_written(monkeypatch, tmp_path):
    module = tf.Module()
    module.root = tf.function(lambda x: tf.sqrt(x), input_signature=[tf.TensorSpec([])])
    stable_switch.enable_stabilize()
    try:
        module.root(tf.constant(4.0))
        known = type("Known", (weakref.WeakKeyDictionary,), {"get": boom})()
        monkeypatch.setattr(stable_switch._SWITCH, "_stable", known)
        with one_warning():
            tf.saved_model.save(module, tmp_path)
    finally:
        monkeypatch.undo()
        stable_switch.disable_stabilize()
    assert tf.saved_model.load(tmp_path).root(tf.constant(4.0)) == 2.0
