"""Findings name the operation whose rounding made the zero that fails later."""

import keras
import numpy as np
import pytest
import tensorflow as tf

import tfsafe
from tfsafe import checked

_INT = "convert the arguments of that operation, tf.cast(x, tf.float32), not its result"


def _interval(z):
    upper = tf.sigmoid(z[1])
    lower = tf.sigmoid(z[0])
    return tf.math.log(
        upper - lower  # Here
    )


def _loop(x):
    total = tf.while_loop(
        lambda i, _: i < 20,
        lambda i, s: (i + 1, s * x[0]),  # Here
        (0, 1.0),
    )[1]
    return tf.math.log(total)


def _scan(x):
    def moved(state, rate):
        return state * rate  # Here

    chance = tf.scan(moved, tf.fill([20, 2], x[0]), initializer=tf.ones([2]))
    return tf.math.log(tf.reduce_sum(chance[-1]))


def _rows(x):
    products = tf.map_fn(tf.reduce_prod, tf.fill([3, 20], x[0]))  # Here
    return 1.0 / products


def _items(x):
    items = tf.TensorArray(tf.float32, 2, clear_after_read=False)
    for i in range(2):
        item = x[i] * x[0] * 1e-30  # Here
        items = items.write(i, item)
    return tf.math.log(items.read(0)) + items.read(1)


def _product(x):
    product = tf.reduce_prod(x, 0)  # Here
    return tf.math.log(product) + 1.0


def _tail(x):
    weights = tf.exp(-1e3 * x)  # Here
    total = tf.reduce_sum(weights)
    return weights[1] / tf.reshape(total, [1])


def _partition(x):
    chance = 1.0 / tf.exp(1e3 + x)  # Here
    return tf.math.log(chance)


def _psnr(x):
    error = x - tf.identity(x)  # Here
    mse = tf.reduce_mean(error**2)
    return 20.0 * tf.math.log(1.0 / tf.sqrt(mse)) / tf.math.log(10.0)


def _picked(x):
    chance = tf.nn.softmax(x)  # Here
    return tf.math.log(tf.gather(chance, [0]))


def _ratio(x):
    new, old = tf.nn.softmax(x), tf.nn.softmax(-x)  # Here
    return new[1] / old[1]


def _entropy(x):
    p = tf.nn.relu(x)  # Here
    return tf.reduce_sum(p * tf.math.log(p))


def _gate(x):
    gate = tf.sigmoid(-x)  # Here
    return tf.math.log(tf.abs(gate))


def _survival(x):
    staying = 1.0 - tf.sigmoid(x)  # Here
    return tf.math.log(tf.math.cumprod(staying))


def _odds(x):
    p = tf.sigmoid(x)
    return p / (1.0 - p)  # Here


def _softplus(x):
    scale = tf.nn.softplus(-x)  # Here
    return 2.0 / scale


def _squared(x):
    variance = tf.exp(-x) ** 2  # Here
    return x / variance


def _scale(x):
    scale = tf.nn.relu(x)  # Here
    heads = tf.concat([tf.stack([x, scale], 1), tf.ones([2, 1])], 1)
    return tf.math.log(heads[:, 1])


def _counts(x):
    rate = tf.nn.relu(x)  # Here
    return rate - tf.constant([2.0, 0.0]) * tf.math.log(rate)


def _pole(x):
    a, b = tf.unstack(tf.nn.relu(x))  # Here
    return tf.math.lgamma(a) + b


def _unit(x):
    h = tf.nn.relu(x)  # Here
    return h / tf.reduce_sum(h)


def _pixels(x):
    side = tf.cast(x, tf.int32)
    count = side * side  # Here
    return tf.sqrt(tf.cast(count[:1], tf.float32))


def _volume(x):
    count = tf.reduce_prod(tf.cast(x, tf.int32))  # Here
    return tf.math.log(tf.cast(count, tf.float32))


def _pairs(x):
    n = tf.cast(x, tf.int64)
    total = tf.reduce_sum(n**1 * 2**60)  # Here
    return 1.0 / tf.sqrt(tf.cast(total, tf.float32))


def _line(function):
    code = function.__code__
    with open(code.co_filename, encoding="utf-8") as file:
        lines = file.read().splitlines()
    start = code.co_firstlineno
    return next(
        number for number in range(start, start + 12) if "# Here" in lines[number - 1]
    )


def _found(function, *args):
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(function, checks="full")(*args)
    return caught.value.findings[-1]


@pytest.mark.parametrize(
    ("function", "x", "what", "fix"),
    [
        (_interval, [40.0, 50.0], "`Sub`{}, which subtracts equal", "log_sub_exp"),
        (_loop, [1e-3, 1.0], "`Mul`{}, which underflows", "loop carry the logarithm"),
        (_product, [1e-30, 1e-30], "`Prod`{}, which underflows", "reduce_sum(tf.math."),
        (_tail, [1.0, 2.0], "`Exp`{}, which underflows", "too small for the dtype"),
        (_partition, [1.0, 2.0], "`RealDiv`{}, which divides by infinity", "log(0)"),
        (_psnr, [1.0, 2.0], "`Sub`{}, which subtracts", ""),
        (_picked, [-300.0, 1.0], "`Softmax`{}, which underflows", "before it is pick"),
        (_ratio, [0.0, 300.0], "`Softmax`{}, which underflows", "log_p - log_q"),
        (_gate, [200.0, 1.0], "`Sigmoid`{}, which underflows", "log_sigmoid(logits)"),
        (_survival, [60.0, 1.0], "`Sub`{}, which subtracts", "log_sigmoid(-x)"),
        (_odds, [60.0, 1.0], "`Sub`{}, which subtracts", "tf.sigmoid(-x)"),
        (_softplus, [200.0, 1.0], "`Softplus`{}, which underflows", "softplus(x) + 1"),
        (_squared, [60.0, 1.0], "`Pow`{}, which underflows", "too small for the dtype"),
        (_scale, [-1.0, 1.0], "`Relu`{}, which is 0 for a neg", "Use tf.nn.softplus"),
        (
            _entropy,
            [-1.0, 1.0],
            "`Relu`{}, which is 0 for a neg",
            "is p * log(p) with its limit, 0 at p = 0",
        ),
        (_counts, [-1.0, -2.0], "`Relu`{}, which is 0 for a neg", "Use tf.nn.softplus"),
        (_pole, [-1.0, 1.0], "`Relu`{}, which is 0 for a neg", "Use tf.nn.softplus"),
        (_pixels, [5e4, 1.0], "number comes from `Mul`{}, which overflows int32", _INT),
        (_volume, [5e4, 5e4], "number comes from `Prod`{}, which overflows int", _INT),
        (_pairs, [4.0, 4.0], "number comes from `Sum`{}, which overflows int64", _INT),
        (
            _unit,
            [-1.0, -2.0],
            "`Relu`{}, which is 0 for a negative",
            "activation='softplus'",
        ),
    ],
    ids=[
        "difference",
        "loop",
        "product",
        "tail",
        "infinity",
        "psnr",
        "picked",
        "ratio",
        "gate",
        "survival",
        "odds",
        "softplus",
        "squared",
        "scale",
        "entropy",
        "counts",
        "pole",
        "pixels",
        "volume",
        "pairs",
        "unit",
    ],
)
def test_the_operation_that_lost_the_digits_is_named(function, x, what, fix):
    finding = _found(function, tf.constant(x))
    place = f" at test_lost_digits.py:{_line(function)}"
    assert what.format(place) in finding.cause
    assert fix in finding.suggestion


def _counted(x, most):
    side = tf.cast(x, tf.int32) * tf.constant([1, most])
    return tf.cast(side * side, tf.float32)


@pytest.mark.parametrize(
    ("function", "x"),
    [
        (lambda x: tf.math.log(x * 2.0), [0.0, 1.0]),
        (lambda x: tf.math.log(tf.reduce_prod(x)), [0.0, 1e-30]),
        (lambda x: tf.math.log(x - 0.0), [0.0, 1.0]),
        (lambda x: tf.math.log(x**3), [0.0, 1.0]),
        (lambda x: tf.math.log(tf.math.cumprod(x)), [0.0, 1e-30]),
        (lambda x: tf.math.log(tf.nn.softmax(tf.math.log(x))), [0.0, 1.0]),
        (lambda x: tf.math.log(tf.nn.relu(x)), [0.0, 1.0]),
        (lambda x: tf.math.log(tf.concat([0 * x, tf.nn.relu(x)], 0)), [-1.0, 1.0]),
        # One sum is 0 for its data.
        (lambda x: 1.0 / tf.reduce_sum(tf.stack([x * x, 0 * x]), 1), [1e-30, 1e-30]),
        # So is the product with weights of 0.
        (lambda x: 1.0 / (tf.nn.relu(x)[None] @ tf.zeros([2, 1])), [-1.0, 1.0]),
        # Integers that overflow are not what the root is of, nor do these.
        (lambda x: tf.sqrt(_counted(x, 50000) - [3.0, -2e9]), [1.0, 1.0]),
        (lambda x: tf.sqrt(-_counted(x, 40000)), [1.0, 1.0]),
        # The zero of the numerator is not what fails.
        (lambda x: (x * x) / tf.constant([0.0, 1.0]), [1e-30, 1e-30]),
    ],
    ids=[
        "product",
        "factor",
        "difference",
        "power",
        "cumprod",
        "softmax",
        "relu",
        "concatenation",
        "mask",
        "weights",
        "other integers",
        "integers",
        "numerator",
    ],
)
def test_a_zero_of_the_data_is_not_said_to_be_rounded(function, x):
    assert " comes from" not in _found(function, tf.constant(x)).cause


@pytest.mark.parametrize(
    ("function", "x", "op", "fix"),
    [
        (_scan, [1e-3, 1.0], "Mul", "let a loop carry the logarithm"),
        (_rows, [1e-3, 1.0], "Prod", "the denominator is not 0, but too small for"),
        (_items, [1e-10, 1e5], "Mul", "the argument is not 0, but too small for"),
    ],
)
def test_a_zero_that_a_loop_puts_into_a_list_is_followed(function, x, op, fix):
    finding = _found(tf.function(function), tf.constant(x))
    place = f"test_lost_digits.py:{_line(function)}"
    assert f"The 0 comes from `{op}` at {place}, which underfl" in finding.cause
    assert fix in finding.suggestion


def _rounded_last(x):
    items = tf.TensorArray(tf.float32, 2, clear_after_read=False)
    return items.write(0, 0.0 * x[0]).write(1, x[0] * x[0])


@pytest.mark.parametrize(
    "function",
    [
        lambda x: tf.math.log(_rounded_last(x).stack()),
        lambda x: tf.math.log(_rounded_last(x).read(0)),
        lambda x: tf.math.log(_rounded_last(x).write(1, x[1]).read(1)),
        lambda x: tf.math.log(_rounded_last(x).write(1, x[1]).stack()),
    ],
    ids=["stack", "item", "new item", "stack of new"],
)
def test_an_item_that_is_0_for_its_data_is_not_said_to_be_rounded(function):
    x = tf.constant([1e-30, 0.0])
    assert " comes from" not in _found(tf.function(function), x).cause


def test_the_quotient_that_failed_is_found_by_what_made_its_arguments():
    finding = _found(_psnr, tf.constant([1.0, 2.0]))
    # A quotient of 0 would mend nothing: its logarithm is taken.
    assert not finding.suggested_code
    assert "tfsafe.ops.divide(1.0, tf.sqrt(mse)) would be 0" in finding.suggestion


def test_a_constant_that_half_precision_cannot_hold_has_not_exploded():
    def masked(x, mask):
        return tf.nn.softmax(x + (1 - mask) * tf.cast(-1e9, tf.float16))

    x = tf.constant([1.0, 2.0], tf.float16)
    finding = _found(masked, x, tf.constant([1.0, 0.0], tf.float16))
    assert "tf.where(mask, x, x.dtype.min)" in finding.suggestion
    assert "exploded" not in finding.suggestion


def test_the_0_of_a_mask_is_not_said_to_be_lost_where_it_meets_an_infinity():
    def masked(x, mask):
        return x + (1 - mask) * tf.constant(-np.inf, tf.float16)

    x = tf.constant([1.0, 2.0], tf.float16)
    finding = _found(masked, x, tf.constant([1.0, 0.0], tf.float16))
    assert finding.cause == "0 * -inf is NaN (at (0,))."


def test_the_merge_of_an_epsilon_with_a_difference_is_named():
    def gap(a, b):
        return tf.math.log(a - b + 1e-9)

    args = tf.constant([3.0, 100.0]), tf.constant([3.0, 50.0])
    if np.isfinite(tf.function(gap)(*args)).all():
        pytest.skip("This TensorFlow does not merge them.")
    with pytest.raises(tfsafe.NumericsError) as caught:
        checked(tf.function(gap))(*args)
    assert "adds the constant 1e-09 to one side" in caught.value.findings[0].cause


def test_the_layer_is_named_in_which_a_number_became_0():
    inputs = keras.Input([1])
    ones = {"kernel_initializer": "ones", "activation": "relu"}
    spread = keras.layers.Dense(1, name="spread", **ones)(inputs)
    model = keras.Model(inputs, spread, name="vae")
    model.compile(loss=lambda y, p: tf.math.log(p))
    with pytest.raises(tfsafe.NumericsError) as caught:
        tfsafe.checked(model).fit(-np.ones([2, 1]), np.ones([2, 1]), verbose=0)
    cause = caught.value.findings[0].cause
    assert " inside vae/spread, which is 0 for a negative input." in cause


def test_an_eager_loop_names_the_operation_that_lost_the_digits():
    weight = tf.Variable(1.0)

    def step(x):
        with tf.GradientTape() as tape:
            chance = tf.nn.softmax(weight * x)
            picked = tf.gather(chance, [0])
            loss = -tf.reduce_sum(tf.math.log(picked))
        return tape.gradient(loss, weight)

    with tfsafe.check_numerics():
        step(tf.constant([1.0, 2.0]))
        with pytest.raises(tfsafe.NumericsError) as caught:
            step(tf.constant([0.0, 200.0]))
    finding = caught.value.findings[0]
    assert "The 0 comes from `Softmax` at test_lost_digits.py:" in finding.cause
    assert "tfsafe.ops.log_softmax(logits)" in finding.suggestion


def _gumbel():
    u = tf.random.uniform([20000], dtype=tf.float16)  # Here
    return -tf.math.log(-tf.math.log(u))


def _exponential():
    seed = tf.constant([1, 2])
    u = tf.random.stateless_uniform([20000], seed, dtype=tf.float16)  # Here
    return -tf.math.log(tf.reshape(u, [-1, 2])) / 3.0


def _pareto():
    u = keras.random.uniform([20000], dtype="float16", seed=1)  # Here
    return 2.0 * u**-0.5


def _time():
    t = tf.random.uniform([200], 0, 8, tf.int32)  # Here
    return 1.0 / tf.cast(t, tf.float32)


def _generator():
    t = tf.random.Generator.from_seed(1).uniform([200], 0, 8, tf.int64)  # Here
    return tf.math.log(tf.cast(t, tf.float32))


_DRAW = "minval=1e-4) does."
_COUNT = "draw from 1 on, with minval=1"


@pytest.mark.parametrize(
    ("function", "op", "fix"),
    [
        (_gumbel, "RandomUniform", _DRAW),
        (_exponential, "StatelessRandomUniformV2", _DRAW),
        (_pareto, "StatelessRandomUniformV2", _DRAW),
        (_time, "RandomUniformInt", _COUNT),
        (_generator, "StatelessRandomUniformIntV2", _COUNT),
    ],
)
@pytest.mark.parametrize("mode", ["eager", "graph", "xla"])
def test_a_draw_of_0_is_named_and_one_above_it_suggested(function, op, fix, mode):
    run = function
    if mode != "eager":
        if function is _generator:
            pytest.skip("It makes a variable.")
        if mode == "xla" and op == "RandomUniform":
            pytest.skip("XLA draws in float32.")
        run = tf.function(function, jit_compile=mode == "xla")
    finding = _found(run)
    place = f"test_lost_digits.py:{_line(function)}"
    assert f"The 0 comes from `{op}` at {place}, which may draw it." in finding.cause
    assert fix in finding.suggestion
    assert "spectrum" not in finding.suggestion


@pytest.mark.parametrize(
    "function",
    [
        # What is made of draws may be 0 for other reasons.
        lambda x: tf.math.log(x * tf.random.uniform([2])),
        lambda x: 1.0 / tf.floor(tf.random.uniform([2])),
        lambda x: tf.math.log(x[:1] + 0 * tf.random.uniform([2])),
    ],
    ids=["product", "floor", "mask"],
)
def test_a_zero_beside_a_draw_is_not_said_to_be_drawn(function):
    assert "may draw" not in _found(function, tf.constant([0.0, 1.0])).cause


@pytest.mark.parametrize(("size", "is_followed"), [(2**20, True), (2**20 + 1, False)])
def test_eager_steps_follow_the_zeros_of_tensors_of_a_size(size, is_followed):
    total = tf.Variable(0.0)
    with tfsafe.check_numerics():
        lost = tf.reduce_sum(tf.math.log(tf.exp(tf.fill([size], -200.0))))
        with pytest.raises(tfsafe.NumericsError) as caught:
            total.assign(lost)
    cause = caught.value.findings[0].cause
    assert ("The 0 comes from `Exp`" in cause) == is_followed
