"""What the layer-norm LSTM and GRU share: masks, dropout, dtypes, Keras' own life."""

from functools import partial

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tests.support import keras_checks, modes
from tests.support.oracle import assert_close
from tfsafe import layers

case = partial(keras_checks.LayerCase, inputs=recurrent.INPUTS, mask=recurrent.MASK)
seeded = {
    "kernel_initializer": keras.initializers.GlorotUniform(seed=2),
    "recurrent_initializer": keras.initializers.Orthogonal(seed=3),
}
CASES = [
    case(partial(layers.LayerNormLSTM, 3, **seeded), name="lstm"),
    case(
        partial(layers.LayerNormGRU, 3, return_sequences=True, **seeded),
        name="gru-sequences",
    ),
]
# Half precision has a test of its own: the numbers of a row are differences, to which
# a relative tolerance per number does not apply.
CHECKS = [
    check
    for check in keras_checks.LAYER_CHECKS
    if not keras_checks.name(check).startswith("keeps_the_dtype")
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=keras_checks.name)
def test_the_layers_are_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)


class TestAgainstKerasLoop:
    @pytest.mark.parametrize(
        ("kind", "options"),
        [(kind, {}) for kind in recurrent.KINDS]
        + [
            (kind, {"go_backwards": True, "zero_output_for_mask": zero})
            for kind in recurrent.BOTH
            for zero in (False, True)
        ],
    )
    def test_masked(self, kind, options):
        layer = recurrent.built(kind, return_sequences=True, **options)
        got, truth = (
            recurrent.run(
                each, recurrent.INPUTS, "graph", mask=tf.constant(recurrent.MASK)
            )
            for each in (layer, recurrent.plain(layer))
        )
        recurrent.close(got, truth)

    @recurrent.both
    def test_with_initial_states_and_all_that_is_returned(self, kind):
        layer = recurrent.built(kind, return_sequences=True, return_state=True)
        states = [
            tf.random.stateless_normal([3, 6], [k, 5])
            for k in range(len(layer.state_size))
        ]
        got, truth = (
            each(
                recurrent.INPUTS, initial_state=states, mask=tf.constant(recurrent.MASK)
            )
            for each in (layer, recurrent.plain(layer))
        )
        assert len(got) == 1 + len(states)
        recurrent.close(got, truth)
        # A row that is masked as a whole keeps its states.
        np.testing.assert_array_equal(got[1][0], states[0][0])

    @recurrent.both
    def test_the_last_output_alone(self, kind):
        layer = recurrent.built(kind)
        mask = tf.constant(recurrent.MASK)
        recurrent.close(
            recurrent.run(layer, recurrent.INPUTS, "graph", mask=mask),
            recurrent.run(recurrent.plain(layer), recurrent.INPUTS, "graph", mask=mask),
        )

    @recurrent.both
    def test_unrolled(self, kind):
        layer = recurrent.built(kind, return_sequences=True)
        unrolled = kind.from_config({**layer.get_config(), "unroll": True})
        unrolled.build(recurrent.INPUTS.shape)
        unrolled.set_weights(layer.get_weights())
        recurrent.close(unrolled(recurrent.INPUTS), layer(recurrent.INPUTS))


class TestDtypes:
    @recurrent.every_kind
    @pytest.mark.parametrize(
        ("policy", "eps"),
        [("mixed_float16", 2**-10), ("mixed_bfloat16", 2**-7), ("float16", 2**-10)],
    )
    def test_half_precision_keeps_its_digits(self, kind, policy, eps):
        layer = recurrent.built(kind, dtype=policy, return_sequences=True)
        exact = kind(6, dtype="float64", return_sequences=True)
        exact.build(recurrent.INPUTS.shape)
        # The weights as the products see them.
        exact.set_weights([
            np.asarray(tf.cast(tf.cast(w, layer.compute_dtype), tf.float64))
            if "kernel" in variable.name
            else w.astype("float64")
            for variable, w in zip(layer.weights, layer.get_weights(), strict=True)
            if "seed" not in variable.name
        ])
        x = np.asarray(
            tf.cast(tf.cast(recurrent.INPUTS, layer.compute_dtype), tf.float64)
        )
        value = layer(x)
        assert value.dtype == layer.compute_dtype
        error = np.abs(np.asarray(tf.cast(value, tf.float64)) - exact(x)).max()
        assert error < 20 * eps

    @recurrent.both
    def test_statistics_are_taken_in_float32(self, kind):
        """Squares of 300 overflow float16."""
        layer = kind(6, dtype="mixed_float16")
        x = 300 * recurrent.INPUTS
        _, gradients = recurrent.run(layer, x, "graph")
        assert np.all(np.isfinite(layer(x)))
        assert all(np.all(np.isfinite(gradient)) for gradient in gradients)
        for weight in layer.cell.trainable_weights:
            assert weight.dtype == "float32"

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            *[(kind, "eager") for kind in recurrent.BOTH],
            (layers.LayerNormGRU, "graph"),
            pytest.param(layers.LayerNormLSTM, "graph", marks=pytest.mark.slow),
            pytest.param(layers.LayerNormGRU, "xla", marks=pytest.mark.slow),
        ],
    )
    def test_the_second_gradient_agrees_with_that_of_the_loop_of_keras(
        self, kind, mode
    ):
        layer = recurrent.built(kind, dtype="float64")
        x = tf.constant(recurrent.INPUTS[:2, :2], tf.float64)

        def second(each, mode):
            return modes.second_gradient(lambda x: tf.reduce_sum(each(x) ** 2), x, mode)

        recurrent.close(second(layer, mode), second(recurrent.plain(layer), "eager"))


class TestInModels:
    @pytest.mark.parametrize(
        ("kind", "mode"),
        [(kind, "graph") for kind in recurrent.BOTH] + [(layers.LayerNormLSTM, "xla")],
    )
    def test_unknown_number_of_steps(self, kind, mode):
        layer = recurrent.built(kind, (None, None, 4), return_sequences=True)

        def step(x):
            with tf.GradientTape() as tape:
                value = layer(x)
            return value, tape.gradient(value, layer.trainable_weights[0].value)

        spec = tf.TensorSpec([None, None, 4], tf.float32)
        compiled = tf.function(step, [spec], autograph=False, jit_compile=mode == "xla")
        for steps in (5, 3):
            recurrent.close(
                compiled(recurrent.INPUTS[:, :steps]),
                step(tf.constant(recurrent.INPUTS[:, :steps])),
            )

    @recurrent.both
    def test_an_empty_batch_has_an_empty_result(self, kind):
        value, gradients = recurrent.run(
            recurrent.built(kind), np.zeros((0, 5, 4), np.float32), "graph"
        )
        assert value.shape == (0, 6)
        assert all(np.all(gradient == 0) for gradient in gradients)

    @recurrent.both
    def test_bidirectional(self, kind, tmp_path):
        model = keras.Sequential([
            keras.Input((None, 4)),
            keras.layers.Masking(),
            keras.layers.Bidirectional(kind(6, return_sequences=True)),
            keras.layers.Bidirectional(kind(6)),
        ])
        path = str(tmp_path / "model.keras")
        model.save(path)
        value = model(recurrent.INPUTS)
        assert value.shape == (3, 12)
        assert_close(keras.saving.load_model(path)(recurrent.INPUTS), value)

    @recurrent.both
    def test_stacked_cells(self, kind, tmp_path):
        cells = [kind.cell_class(units, recurrent_dropout=0.2) for units in (5, 3)]
        model = keras.Sequential([keras.Input((None, 4)), keras.layers.RNN(cells)])
        path = str(tmp_path / "model.keras")
        model.save(path)
        value = model(recurrent.INPUTS)
        assert_close(keras.saving.load_model(path)(recurrent.INPUTS), value)
        one = kind(5, return_sequences=True)
        other = kind(3)
        for layer, cell in zip((one, other), cells, strict=True):
            layer.build((None, None, cell.kernel.shape[0]))
            layer.set_weights(cell.get_weights())
        recurrent.close(other(one(recurrent.INPUTS)), value)

    @recurrent.both
    def test_stateful(self, kind):
        layer = kind(6, stateful=True)
        first = layer(recurrent.INPUTS)
        second = layer(recurrent.INPUTS)
        assert np.abs(first - second).max() > 0.01
        layer.reset_state()
        np.testing.assert_array_equal(layer(recurrent.INPUTS), first)
        whole = kind(6)
        whole.build((3, 10, 4))
        whole.set_weights(layer.cell.get_weights())
        recurrent.close(
            whole(np.concatenate([recurrent.INPUTS, recurrent.INPUTS], 1)), second
        )

    @recurrent.both
    def test_the_config_has_every_option(self, kind):
        options = {
            "units": 3,
            "activation": "relu",
            "recurrent_activation": "hard_sigmoid",
            "use_bias": False,
            "fused": True,
            "layer_norm": True,
            "epsilon": 1e-4,
            "recurrent_dropout": 0.1,
            "recurrent_dropout_mask": "sequence",
            "dropout": 0.2,
            "seed": 4,
            "return_sequences": True,
            "return_state": True,
            "go_backwards": True,
            "stateful": True,
            "unroll": True,
            "zero_output_for_mask": True,
            "name": "mine",
        }
        config = kind(**options).get_config()
        assert {key: config[key] for key in options} == options
        assert not {"cell", "unit_forget_bias", "reset_after"} & set(config)
        assert kind.from_config(config).get_config() == config


def _gradients(layer, *, second=False):
    """Returns a function of a graph, traced with the options that the layer has now."""

    @tf.function(autograph=False)
    def gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            value = tf.reduce_sum(layer(x, training=True) ** 2)
        return tape.gradient(value, [x, *layer.trainable_variables])

    @tf.function(autograph=False)
    def of_gradients(x):
        with tf.GradientTape() as tape:
            tape.watch(x)
            size = tf.reduce_sum(gradients(x)[0] ** 2)
        return [tape.gradient(size, x)]

    return of_gradients if second else gradients


@pytest.mark.skipif(modes.HAS_GPU, reason="only a CPU gains by it")
@pytest.mark.parametrize("layer_class", [layers.LayerNormLSTM, layers.LayerNormGRU])
def test_the_loop_over_a_long_sequence_is_compiled_alone(layer_class):
    # In float64: the slope of 40 normalised steps has lost up to three digits.
    x = tf.random.stateless_normal([2, 40, 3], [1, 2], dtype=tf.float64)
    layer = layer_class(4, dtype="float64")
    layer(x)
    compiled = _gradients(layer)
    types = [op.type for op in compiled.get_concrete_function(x).graph.get_operations()]
    assert types.count("PartitionedCall") == 2
    got = [*compiled(x), *_gradients(layer, second=True)(x)]
    layer.supports_jit = False
    plain = _gradients(layer)
    types = [op.type for op in plain.get_concrete_function(x).graph.get_operations()]
    assert "PartitionedCall" not in types
    wanted = [*plain(x), *_gradients(layer, second=True)(x)]
    for result, truth in zip(got, wanted, strict=True):
        why = "40 normalised steps lose up to three digits"
        recurrent.close(result, truth, 400, why)


def test_a_loop_with_an_activation_by_hand_is_not_compiled():
    layer = layers.LayerNormLSTM(4, activation=lambda x: tf.tanh(x))
    x = tf.random.stateless_normal([2, 40, 3], [1, 2])
    layer(x)
    graph = _gradients(layer).get_concrete_function(x).graph
    assert "PartitionedCall" not in {op.type for op in graph.get_operations()}
