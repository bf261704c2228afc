"""Attributes that are replaced and restored, in any order and from any thread."""

import functools
import itertools
import threading

import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe._patching import Patch, patches_on
from tfsafe.rewriting.targets.switch import disable_stabilize, enable_stabilize

NAMES = ("first", "second", "third")


class Base:
    def value(self):
        return ["base"]


class Owner(Base):
    pass


class Own(Base):
    def value(self):
        return ["own"]


@pytest.fixture(params=["inherited", "own", "object", "object with its own"])
def owner(request):
    """Returns what is patched, and how to call it."""
    if request.param in ("inherited", "own"):
        kind = type("Kind", (Owner if request.param == "inherited" else Own,), {})
        if request.param == "own":
            kind.value = lambda self: ["own"]
        return kind, lambda: kind().value()
    thing = Own()
    if request.param == "object with its own":
        thing.value = lambda: ["its own"]
    return thing, lambda: thing.value()


def marked(name):
    def make(original):
        return lambda *args: [name, *original(*args)]

    return make


def foreign(owner, name="foreign"):
    """Wraps as another package would; returns its undoing."""
    original, before = owner.value, vars(owner).get("value")

    @functools.wraps(original)
    def wrapper(*args):
        return [name, *original(*args)]

    owner.value = wrapper

    def undo():
        if before is None:
            del owner.value
        else:
            owner.value = before

    return undo


@pytest.mark.parametrize("order", list(itertools.permutations(range(3))))
def test_patches_are_removed_in_any_order(owner, order):
    thing, call = owner
    before, usual = vars(thing).get("value"), call()
    patches = [Patch(thing, "value", marked(name)) for name in NAMES]
    for patch in patches:
        patch.install()
    assert call() == ["third", "second", "first", *usual]
    left = set(NAMES)
    for index in order:
        patches[index].remove()
        left.discard(NAMES[index])
        assert call() == [*(n for n in reversed(NAMES) if n in left), *usual]
    assert vars(thing).get("value") is before


@pytest.mark.parametrize("order", list(itertools.permutations(range(4))))
def test_a_foreign_wrapper_survives_and_may_be_undone_at_any_time(owner, order):
    thing, call = owner
    usual = call()
    first, second = (Patch(thing, "value", marked(name)) for name in NAMES[:2])
    first.install()
    undo = foreign(thing)
    second.install()
    # What is undone by assignment takes what came later along.
    steps = [first.remove, second.remove, first.install, second.install]
    expected = {"first", "second"}
    for index in order:
        steps[index]()
        name = NAMES[index % 2]
        expected = expected | {name} if index > 1 else expected - {name}
        found = call()
        assert found[-len(usual) :] == usual
        assert set(found[: -len(usual)]) == expected | {"foreign"}
        assert len(set(found)) == len(found)
    first.remove()
    second.remove()
    assert call() == ["foreign", *usual]
    undo()
    assert call() == usual


def test_an_inherited_attribute_is_inherited_again():
    patch = Patch(Owner, "value", marked("patched"))
    patch.install()
    undo = foreign(Owner)
    patch.remove()
    undo()
    again = Patch(Owner, "value", marked("again"))
    again.install()
    again.remove()
    assert "value" not in vars(Owner)
    assert Owner().value() == ["base"]


def test_installing_and_removing_twice_is_the_same_as_once(owner):
    thing, call = owner
    usual, patch = call(), Patch(thing, "value", marked("first"))
    assert patch.wrapper is None
    for _ in range(2):
        patch.install()
        patch.install()
        assert call() == ["first", *usual]
        assert patches_on(thing, "value") == [patch]
        patch.remove()
        patch.remove()
        assert call() == usual
        assert patches_on(thing, "value") == []


def test_patches_below_a_foreign_wrapper_are_found(owner):
    thing, _ = owner
    first, second = (Patch(thing, "value", marked(name)) for name in NAMES[:2])
    first.install()
    undo = foreign(thing)
    second.install()
    assert patches_on(thing, "value") == [second, first]
    second.remove()
    assert patches_on(thing, "value") == [first]
    undo()
    first.remove()


def test_two_threads_install_and_remove():
    class Kind(Own):
        pass

    start = threading.Barrier(3)
    wrong = []

    def work(name):
        patch = Patch(Kind, "value", marked(name))
        start.wait()
        for _ in range(300):
            patch.install()
            if Kind().value().count(name) != 1:
                wrong.append(name)
            patch.remove()
            if name in Kind().value():
                wrong.append(name)

    threads = [threading.Thread(target=work, args=[name]) for name in NAMES[:2]]
    for thread in threads:
        thread.start()
    start.wait()
    for _ in range(300):
        assert Kind().value()[-1] == "own"
    for thread in threads:
        thread.join()
    assert not wrong
    assert "value" not in vars(Kind)


def naive(x):
    return tf.math.log(tf.sigmoid(x))


LOGITS = tf.constant([[0.0, -200.0]])
SWITCHES = {
    "checks": (
        tfsafe.debugging.enable_check_numerics,
        tfsafe.debugging.disable_check_numerics,
    ),
    "stabilize": (enable_stabilize, disable_stabilize),
}


@pytest.fixture
def all_off():
    yield
    for _, disable in SWITCHES.values():
        disable()


def is_checked():
    try:
        tf.function(tf.math.log)(tf.constant(-1.0))
    except tfsafe.NumericsError:
        return True
    return False


def is_stable():
    try:
        return bool(np.isfinite(tf.function(naive)(LOGITS)).all())
    except tfsafe.NumericsError:
        return False


WORKS = {"checks": is_checked, "stabilize": is_stable}


@pytest.mark.usefixtures("all_off")
@pytest.mark.parametrize("on", list(itertools.permutations(SWITCHES)))
@pytest.mark.parametrize("off", list(itertools.permutations(SWITCHES)))
def test_switching_one_feature_off_keeps_the_other_and_third_parties(on, off):
    kind = type(tf.function(naive))
    original, seen = kind.__call__, []
    SWITCHES[on[0]][0]()
    ours = kind.__call__

    @functools.wraps(ours)
    def theirs(self, *args, **kwargs):
        seen.append(self)
        return ours(self, *args, **kwargs)

    kind.__call__ = theirs
    try:
        SWITCHES[on[1]][0]()
        left = set(SWITCHES)
        for name in off:
            SWITCHES[name][1]()
            left.discard(name)
            seen.clear()
            assert {each for each, works in WORKS.items() if works()} == left
            assert seen
        assert kind.__call__ is theirs
    finally:
        kind.__call__ = original


def test_tracing_in_one_thread_changes_no_gradient_of_another():
    inside, done = threading.Event(), threading.Event()

    def traced(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            loss = tf.reduce_sum(naive(x))
        inside.set()
        assert done.wait(60)
        return tape.gradient(loss, x)

    helper = tf.function(lambda x: tf.reduce_sum(naive(x) ** 2), autograph=False)

    def everything(x):
        with tf.GradientTape(persistent=True) as tape:
            tape.watch(x)
            with tape.stop_recording():
                scale = tf.reduce_sum(x)
            first = tape.gradient(helper(x) * scale, x, unconnected_gradients="zero")
            tape.reset()
            tape.watch(x)
            loss = naive(x)
        both = tf.function(
            lambda x: tf.gradients(tf.reduce_sum(helper(x)), x), autograph=False
        )
        return [first, tape.gradient(loss, x), tape.jacobian(loss, x), *both(x)]

    x = tf.constant([[0.0, -200.0]])
    usual = everything(x)
    assert any(np.isnan(each).any() for each in usual)
    results = []
    stable = tfsafe.stabilize(tf.function(traced, autograph=False))
    thread = threading.Thread(target=lambda: results.append(stable(LOGITS)))
    thread.start()
    try:
        assert inside.wait(60)
        meanwhile = everything(x)
    finally:
        done.set()
        thread.join()
    for expected, found in zip(usual, meanwhile, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert np.isfinite(results[0]).all()
