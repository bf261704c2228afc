"""Measures the checks of torch and JAX: a training step with them, over one without.

Run `python -m benchmarks.peers [--models MLP LSTM] [--frameworks torch JAX]
[--rounds N] [--builds N]` in an environment with what `benchmarks/peers.txt` names;
`make bench` makes one.

The models, their batches, the loss and the optimizer are those of `benchmarks.checks`,
and so are the rounds, the columns and "control". Each step is divided by the plain one
of the same framework. torch runs its step operation by operation, JAX compiles it with
`jax.jit`.

"detect_anomaly" is `torch.autograd.set_detect_anomaly`, which looks for NaN in what the
backward pass computes. "checkify" is `jax.experimental.checkify` with `float_checks`,
compiled, its error thrown after each step; "debug_nans" is `jax.debug_nans`. Each check
first has to find a NaN in a batch.
"""

import argparse
import contextlib
import functools
import io
import itertools
import os
import warnings

# On the processor like the others, whatever else there is.
os.environ.setdefault("JAX_PLATFORMS", "cpu")
# torch's threads spin while they wait for each other: where another process has one of
# the processors, a step of 2 ms takes 100.
os.environ.setdefault("OMP_WAIT_POLICY", "passive")

import jax
import jax.numpy as jnp
import numpy as np
import torch
from jax.experimental import checkify

from benchmarks import _sizes, _timing

# Of Adam: the defaults of Keras.
RATE, BETA_1, BETA_2, EPSILON = 1e-3, 0.9, 0.999, 1e-7


def torch_mlp():
    widths = [_sizes.SHAPES["MLP"][-1], *_sizes.HIDDEN]
    layers = []
    for inputs, outputs in itertools.pairwise(widths):
        layers += [torch.nn.Linear(inputs, outputs), torch.nn.ReLU()]
    return torch.nn.Sequential(*layers, torch.nn.Linear(widths[-1], _sizes.CLASSES))


class TorchLSTM(torch.nn.Module):
    def __init__(self):
        super().__init__()
        features = _sizes.SHAPES["LSTM"][-1]
        self.lstm = torch.nn.LSTM(features, _sizes.UNITS, batch_first=True)
        self.last = torch.nn.Linear(_sizes.UNITS, _sizes.CLASSES)

    def forward(self, x):
        outputs, _ = self.lstm(x)
        return self.last(outputs[:, -1])


def torch_step(name, x, y, check):
    """Returns a function that runs one training step in torch."""
    torch.manual_seed(0)
    model = {"MLP": torch_mlp, "LSTM": TorchLSTM}[name]()
    loss = torch.nn.CrossEntropyLoss()
    adam = torch.optim.Adam(model.parameters(), RATE, (BETA_1, BETA_2), EPSILON)
    x, y = torch.from_numpy(x), torch.from_numpy(y)

    def run():
        with torch.autograd.set_detect_anomaly(check == "detect_anomaly"):
            adam.zero_grad()
            value = loss(model(x), y)
            value.backward()
            adam.step()
        return value.detach()

    return run


def jax_weights(name):
    """Returns the weights of a model."""
    rng = np.random.default_rng(0)

    def kernel(inputs, outputs):
        values = rng.normal(scale=inputs**-0.5, size=(inputs, outputs))
        return jnp.asarray(values, "float32")

    def dense(inputs, outputs):
        return kernel(inputs, outputs), jnp.zeros(outputs)

    features, units = _sizes.SHAPES[name][-1], _sizes.UNITS
    if name == "MLP":
        widths = [features, *_sizes.HIDDEN, _sizes.CLASSES]
        return [dense(*pair) for pair in itertools.pairwise(widths)]
    gates = kernel(features, 4 * units), kernel(units, 4 * units), jnp.zeros(4 * units)
    return [gates, dense(units, _sizes.CLASSES)]


def jax_mlp(weights, x):
    *hidden, (kernel, bias) = weights
    for inner, added in hidden:
        x = jax.nn.relu(x @ inner + added)
    return x @ kernel + bias


def jax_lstm(weights, x):
    (kernel, recurrent, added), (last, bias) = weights

    def step(state, x):
        h, c = state
        gates = x @ kernel + h @ recurrent + added
        i, f, new, o = jnp.split(gates, 4, axis=-1)
        c = jax.nn.sigmoid(f) * c + jax.nn.sigmoid(i) * jnp.tanh(new)
        return (jax.nn.sigmoid(o) * jnp.tanh(c), c), None

    zeros = jnp.zeros((x.shape[0], recurrent.shape[0]))
    (h, _), _ = jax.lax.scan(step, (zeros, zeros), x.swapaxes(0, 1))
    return h @ last + bias


def adam(state, gradients):
    """Returns weights, moments and number of steps after one more step."""
    weights, means, squares, count = state
    count = count + 1
    rate = RATE * jnp.sqrt(1 - BETA_2**count) / (1 - BETA_1**count)
    each = jax.tree.map
    means = each(lambda m, g: m + (1 - BETA_1) * (g - m), means, gradients)
    squares = each(lambda v, g: v + (1 - BETA_2) * (g * g - v), squares, gradients)
    weights = each(
        lambda w, m, v: w - rate * m / (jnp.sqrt(v) + EPSILON), weights, means, squares
    )
    return weights, means, squares, count


def jax_step(name, x, y, check):
    """Returns a function that runs one training step in JAX."""
    model = {"MLP": jax_mlp, "LSTM": jax_lstm}[name]

    def loss(weights, x, y):
        log_probs = jax.nn.log_softmax(model(weights, x))
        return -jnp.take_along_axis(log_probs, y[:, None], axis=-1).mean()

    def step(state, x, y):
        value, gradients = jax.value_and_grad(loss)(state[0], x, y)
        return adam(state, gradients), value

    if check == "checkify":
        step = checkify.checkify(step, errors=checkify.float_checks)
    step = jax.jit(step)
    weights = jax_weights(name)
    zeros = jax.tree.map(jnp.zeros_like, weights)
    state = weights, zeros, zeros, jnp.zeros(())
    x, y = jnp.asarray(x), jnp.asarray(y, "int32")

    def run():
        nonlocal state
        with jax.debug_nans(check == "debug_nans"):
            if check == "checkify":
                error, (state, value) = step(state, x, y)
                error.throw()
            else:
                state, value = step(state, x, y)
        return value

    return run


# How each framework makes a step, and its variants.
FRAMEWORKS = {
    "torch": (torch_step, ("none", "control", "detect_anomaly")),
    "JAX": (jax_step, ("none", "control", "checkify", "debug_nans")),
}


def find_nan(make, name, check):
    """Exits unless a check finds a NaN; the first call that is timed sets up less."""
    x, y = _sizes.batch(_sizes.SHAPES[name])
    x[0, 0] = np.nan
    run = make(name, x, y, check)
    # torch warns of the operation, and JAX prints that it repeats the step.
    with warnings.catch_warnings(), contextlib.redirect_stdout(io.StringIO()):
        warnings.simplefilter("ignore")
        try:
            run()
        except (RuntimeError, FloatingPointError, checkify.JaxRuntimeError) as error:
            if "nan" not in str(error):
                raise
        else:
            if check not in {"none", "control"}:
                raise SystemExit(f"{check} misses a NaN in the {name}.")


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--rounds", type=int, default=25)
    parser.add_argument("--builds", type=int, default=2)
    for name, choices in {"models": _sizes.SHAPES, "frameworks": FRAMEWORKS}.items():
        parser.add_argument(
            f"--{name}", nargs="+", choices=list(choices), default=list(choices)
        )
    arguments = parser.parse_args()
    print(_timing.HEAD)
    for framework in arguments.frameworks:
        make, variants = FRAMEWORKS[framework]
        for name in arguments.models:
            for variant in variants:
                find_nan(make, name, variant)
            x, y = _sizes.batch(_sizes.SHAPES[name])
            for row in _timing.rows(
                f"{name}, {framework}",
                functools.partial(make, name, x, y),
                variants,
                arguments.rounds,
                arguments.builds,
            ):
                print(row, flush=True)


if __name__ == "__main__":
    main()
