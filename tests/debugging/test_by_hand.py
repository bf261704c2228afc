"""Of an update by hand the learning rate is read off the program."""

import linecache

import pytest
import tensorflow as tf

import tfsafe
from tests.support import modes
from tfsafe.debugging.explain import by_hand

RATE = 2.5


@pytest.mark.parametrize("mode", modes.MODES)
def test_the_rate_of_a_diverging_update_is_named(mode):
    w = tf.Variable(1.0)

    def step(x):
        with tf.GradientTape() as tape:
            loss = tf.square(w * x)
        slope = tape.gradient(loss, w)
        w.assign_sub(RATE * slope)
        return loss

    run = tfsafe.checked(modes.compile_for(mode, step))

    def train():
        for _ in range(100):
            run(tf.constant(10.0))

    with pytest.raises(tfsafe.NumericsError) as caught:
        train()
    error = caught.value
    assert error.learning_rate == RATE
    line = step.__code__.co_firstlineno + 4
    words = f"The learning rate of the update in line {line} is 2.5."
    assert words in error.findings[0].cause


@pytest.mark.parametrize(
    ("program", "rates"),
    [
        ("w.assign_sub(0.1 * g)", [0.1]),
        ("lr = 0.1\nw.assign_sub(g * lr)", [0.1]),
        ("def step():\n    w.assign(w - lr * g)\nlr = 0.1", [0.1]),
        ("b, lr = 0.9, 0.1\nw.assign_sub(lr * m / (tf.sqrt(v) + 1e-8))", [0.1]),
        ("w.assign_sub(0.1 * g)\nb.assign_sub(0.1 * h)", [0.1]),
        # Averages, sums, and what is not a number.
        ("slow.assign_sub(0.01 * (slow - w))", []),
        ("slow.assign(0.99 * slow + 0.01 * w)", []),
        ("w.assign(v - 0.1 * g)", []),
        ("w.assign_sub(rate() * g)", []),
        ("w.assign_sub(g)", []),
    ],
)
def test_a_rate_is_read_where_it_is_a_number(program, rates, monkeypatch):
    lines = [f"{line}\n" for line in program.split("\n")]
    monkeypatch.setattr(linecache, "getlines", lambda path: lines)
    changes = by_hand._changes(by_hand.syntax.parsed(program))
    found = [rate for each in changes for rate in by_hand._rates(each, "a.py")]
    assert list(dict.fromkeys(found)) == rates
