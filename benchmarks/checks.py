"""Measures the cost of the numeric checks: a training step with them, over one without.

Run `python -m benchmarks.checks [--models MLP ...] [--ways loop fit monitor] [--modes
graph XLA] [--checks watch domain ...] [--rounds N] [--builds N]`.

The ways are a loop written by hand (`loop`), the training function of `fit` (`fit`),
and a whole `fit` of 100 steps with the callback `NumericsMonitor` (`monitor`), which
knows no `strict`. The first two are checked by `tfsafe.checked`. "TensorFlow" is
`tf.debugging.enable_check_numerics`, switched on while its function is traced and runs;
XLA cannot compile it.

All variants of a step run in one process. In each round they run one after the other,
in an order drawn again, and each is divided by the one without checks of the same
round; the table shows the median and the quartiles of these ratios. "control" is the
step without checks once more: its distance from 1 is the noise. The first call, which
traces and compiles, is timed once for each build of all variants, and is shown as the
median over the builds.
"""

import argparse
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import tensorflow as tf

import tfsafe
from benchmarks import _models, _timing

# The levels of checks of `tfsafe.checked` and `NumericsMonitor`.
ASKED = {
    "watch": {"checks": "watch"},
    "domain": {"checks": "domain"},
    "full": {"checks": "full"},
    "strict": {"checks": "full", "strict": True},
}
VARIANTS = ("control", *ASKED, "TensorFlow")
# Of one `fit` with the monitor.
STEPS = 100


def loop(name, compiled, variant):
    """Returns a function that runs one step of a loop written by hand."""
    model, x, y = _models.make(name)
    step = _models.train_step(model, compiled=compiled)

    if variant in ASKED:
        step = tfsafe.checked(step, **ASKED[variant])
    x, y = tf.constant(x), tf.constant(y)
    return lambda: step(x, y)


def fit(name, compiled, variant):
    """Returns a function that runs one step of `fit`'s training function."""
    model, batches = compiled_model(name, compiled)
    if variant in ASKED:
        model = tfsafe.checked(model, **ASKED[variant])
    model.make_train_function()
    iterator = iter(batches)
    return lambda: model.train_function(iterator)


def monitor(name, compiled, variant):
    """Returns a function that runs `fit` for a number of steps."""
    model, batches = compiled_model(name, compiled)
    callbacks = []
    if variant in ASKED:
        callbacks = [tfsafe.callbacks.NumericsMonitor(**ASKED[variant])]
    given = {"steps_per_epoch": STEPS, "verbose": 0, "shuffle": False}
    return lambda: model.fit(batches, callbacks=callbacks, **given).history["loss"]


def compiled_model(name, compiled):
    """Returns a model that is ready for `fit`, and its data."""
    model, x, y = _models.make(name)
    loss = keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("adam", loss, jit_compile=compiled)
    model.optimizer.build(model.trainable_variables)
    return model, _models.repeated(x, y)


WAYS = {"loop": loop, "fit": fit, "monitor": monitor}


def under_tensorflows(run):
    """Returns a function that runs under TensorFlow's own checks."""

    def checked():
        tf.debugging.enable_check_numerics()
        try:
            return run()
        finally:
            tf.debugging.disable_check_numerics()

    return checked


def rows(way, name, compiled, arguments):
    """Returns the rows of the table for one step."""
    left_out = {"TensorFlow"} if compiled else set()
    if way == "monitor":
        left_out.add("strict")

    def make(variant):
        run = WAYS[way](name, compiled, variant)
        return under_tensorflows(run) if variant == "TensorFlow" else run

    return _timing.rows(
        f"{name}, {way}, {'XLA' if compiled else 'graph'}",
        make,
        ["none", *(check for check in arguments.checks if check not in left_out)],
        arguments.rounds,
        arguments.builds,
        STEPS if way == "monitor" else 1,
    )


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--builds", type=int, default=2)
    for name, choices in {
        "models": _models.BODIES,
        "ways": WAYS,
        "modes": ("graph", "XLA"),
        "checks": VARIANTS,
    }.items():
        parser.add_argument(
            f"--{name}", nargs="+", choices=list(choices), default=list(choices)
        )
    arguments = parser.parse_args()
    # Do not count the one-time set-up of TensorFlow and XLA in the first call.
    loop("MLP", "XLA" in arguments.modes, "none")()
    print(_timing.HEAD)
    for name in arguments.models:
        for way in arguments.ways:
            for mode in arguments.modes:
                for row in rows(way, name, mode == "XLA", arguments):
                    print(row, flush=True)


if __name__ == "__main__":
    main()
