"""Measures the memory of a training step beyond the model and the slots of its Adam.

Run `python -m benchmarks.memory [--variants plain watch ...] [--modes graph XLA]`, on
Linux. The model has 36 million parameters. Each variant is a process of its own: a
small model traces and compiles first, for the memory of the libraries. Then the peak of
each step of the large one is read, less what the process held before that model was
made, its weights, and its two slots of each weight. The table shows the median and the
quartiles in multiples of the parameters. "TensorFlow" is
`tf.debugging.enable_check_numerics`, which XLA cannot compile.
"""

import argparse
import os
import pathlib
import statistics
import subprocess
import sys

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "3")

import keras
import numpy as np
import tensorflow as tf

import tfsafe
from benchmarks import _models, _timing

WIDTH, DEPTH, ROWS = 3000, 4, 32
# Returns freed memory to the system at once, so that a step does not show the peak of
# the first call. oneDNN has a pool of its own, which keeps it.
RETURNED = {
    "MALLOC_MMAP_THRESHOLD_": "1000000",
    "MALLOC_TRIM_THRESHOLD_": "1000000",
    "TF_ENABLE_ONEDNN_OPTS": "0",
}
CHECKS = ("watch", "domain", "full")
POLICIES = ("replace", "skip")
VARIANTS = ("plain", *CHECKS, *POLICIES, "stabilize", "TensorFlow")
MODES = ("graph", "XLA")


def train_step(variant, compiled, width=WIDTH):
    """Returns a function that runs one training step, and the bytes of its weights."""
    layers = [keras.layers.Dense(width, "relu") for _ in range(DEPTH)]
    model = keras.Sequential([keras.Input((width,)), *layers, keras.layers.Dense(10)])
    optimizer = keras.optimizers.Adam()
    if variant in POLICIES:
        optimizer = tfsafe.SafeOptimizer(optimizer, policy=variant)
    step = _models.train_step(model, optimizer=optimizer, compiled=compiled)

    if variant in CHECKS:
        step = tfsafe.checked(step, checks=variant)
    elif variant == "stabilize":
        step = tfsafe.stabilize(step)
    elif variant == "TensorFlow":
        tf.debugging.enable_check_numerics()
    rng = np.random.default_rng(0)
    x = tf.constant(rng.normal(size=(ROWS, width)), tf.float32)
    y = tf.constant(rng.integers(0, 10, ROWS))
    return lambda: step(x, y).numpy(), 4 * model.count_params()


def peaks(run, steps):
    """Returns the bytes that the process held at most during each step."""
    run()
    found = []
    for _ in range(steps):
        # Sets the peak of the process back to what it holds now.
        pathlib.Path("/proc/self/clear_refs").write_text("5", encoding="utf-8")
        run()
        found.append(_status("VmHWM"))
    return found


def _status(name):
    text = pathlib.Path("/proc/self/status").read_text(encoding="utf-8")
    return 1024 * int(text.partition(f"{name}:")[2].split()[0])


def show(variant, mode, steps):
    """Prints the row of one variant, measured in this process."""
    small, _ = train_step(variant, mode == "XLA", width=30)
    peaks(small, steps)
    before = _status("VmRSS")
    run, parameters = train_step(variant, mode == "XLA")
    # The weights and two slots are no cost of a step.
    held = before + 3 * parameters
    found = [(peak - held) / parameters for peak in peaks(run, steps)]
    row = f"| {mode} | {variant} "
    print(f"{row}| {_timing.cell(statistics.quantiles(found, n=4))} |")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--steps", type=int, default=5)
    parser.add_argument("--variants", nargs="+", default=VARIANTS, choices=VARIANTS)
    parser.add_argument("--modes", nargs="+", default=MODES, choices=MODES)
    parser.add_argument("--in-process", action="store_true", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.in_process:
        show(options.variants[0], options.modes[0], options.steps)
        return
    if not sys.platform.startswith("linux"):
        print("Not measured: the peak of a step is read from Linux' /proc.")
        return
    print("| mode | variant | peak over the parameters [quartiles] |")
    print("|---|---|---|", flush=True)
    for mode in options.modes:
        for variant in options.variants:
            if (mode, variant) == ("XLA", "TensorFlow"):
                continue
            command = [sys.executable, "-m", "benchmarks.memory", "--in-process"]
            command += ["--steps", str(options.steps)]
            command += ["--modes", mode, "--variants", variant]
            subprocess.run(command, check=True, env=os.environ | RETURNED)


if __name__ == "__main__":
    main()
