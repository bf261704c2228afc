"""What the layer-norm LSTM and GRU share: masks, dropout, dtypes, Keras' own life."""

from functools import partial
from typing import ClassVar

import keras
import numpy as np
import pytest
import tensorflow as tf

from tests.layers import recurrent
from tests.support import keras_checks, modes
from tfsafe import layers

BOTH = [layers.LayerNormLSTM, layers.LayerNormGRU]
KINDS = [*BOTH, partial(layers.LayerNormLSTM, normalize_state="stored")]
KINDS += [partial(kind, fused=True) for kind in BOTH]

both = pytest.mark.parametrize("kind", BOTH)
every_kind = pytest.mark.parametrize(
    "kind", KINDS, ids=["lstm", "gru", "lstm-stored", "lstm-fused", "gru-fused"]
)

INPUTS = np.random.default_rng(0).normal(size=(3, 5, 4)).astype("float32")
# A whole row, leading steps, trailing steps, and one in the middle.
MASK = np.array([[0, 0, 0, 0, 0], [0, 1, 1, 0, 1], [1, 1, 1, 0, 0]], bool)


def _close(got, truth, tolerance=1e-5):
    """Compares with a share of the largest magnitude of each tensor."""
    for a, b in zip(tf.nest.flatten(got), tf.nest.flatten(truth), strict=True):
        a, b = np.asarray(a, np.float64), np.asarray(b, np.float64)
        assert np.all(np.isfinite(a))
        assert np.any(b != 0)
        np.testing.assert_allclose(a, b, atol=tolerance * np.abs(b).max(), rtol=0)


def _built(kind, shape=INPUTS.shape, **options):
    layer = kind(6, **options)
    layer.build(shape)
    recurrent.randomise(layer)
    return layer


def _plain(layer, **options):
    """Returns Keras' own loop around the cell of `layer`."""
    names = ("return_sequences", "return_state", "go_backwards", "zero_output_for_mask")
    given = {name: getattr(layer, name) for name in names}
    given["dtype"] = layer.dtype_policy
    plain = keras.layers.RNN(layer.cell, **{**given, **options})
    plain.build(INPUTS.shape)
    return plain


case = partial(keras_checks.LayerCase, inputs=INPUTS, mask=MASK)
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
# Two have a test of their own here. Half precision: the numbers of a row are
# differences, to which a relative tolerance per number does not apply. Export: the
# check lets go of what it loaded, and with it of the weights.
CHECKS = [
    check
    for check in keras_checks.LAYER_CHECKS
    if not keras_checks.name(check).startswith(("keeps_the_dtype", "can_be_cloned"))
]


@pytest.mark.parametrize("case", CASES, ids=str)
@pytest.mark.parametrize("check", CHECKS, ids=keras_checks.name)
def test_the_layers_are_at_home_in_keras(case, check, tmp_path):
    check(case, tmp_path)


class TestAgainstKerasLoop:
    @pytest.mark.parametrize(
        ("kind", "options"),
        [(kind, {}) for kind in KINDS]
        + [
            (kind, {"go_backwards": True, "zero_output_for_mask": zero})
            for kind in BOTH
            for zero in (False, True)
        ],
    )
    def test_masked(self, kind, options):
        layer = _built(kind, return_sequences=True, **options)
        got, truth = (
            recurrent.run(each, INPUTS, "graph", mask=tf.constant(MASK))
            for each in (layer, _plain(layer))
        )
        _close(got, truth)

    @both
    def test_with_initial_states_and_all_that_is_returned(self, kind):
        layer = _built(kind, return_sequences=True, return_state=True)
        states = [
            tf.random.stateless_normal([3, 6], [k, 5])
            for k in range(len(layer.state_size))
        ]
        got, truth = (
            each(INPUTS, initial_state=states, mask=tf.constant(MASK))
            for each in (layer, _plain(layer))
        )
        assert len(got) == 1 + len(states)
        _close(got, truth)
        # A row that is masked as a whole keeps its states.
        np.testing.assert_array_equal(got[1][0], states[0][0])

    @both
    def test_the_last_output_alone(self, kind):
        layer = _built(kind)
        mask = tf.constant(MASK)
        _close(
            recurrent.run(layer, INPUTS, "graph", mask=mask),
            recurrent.run(_plain(layer), INPUTS, "graph", mask=mask),
        )

    @both
    def test_unrolled(self, kind):
        layer = _built(kind, return_sequences=True)
        unrolled = kind.from_config({**layer.get_config(), "unroll": True})
        unrolled.build(INPUTS.shape)
        unrolled.set_weights(layer.get_weights())
        _close(unrolled(INPUTS), layer(INPUTS))


class TestMasks:
    @every_kind
    @pytest.mark.parametrize("loop", ["ours", "keras"])
    def test_nan_in_padding_leaks_neither_into_values_nor_gradients(self, kind, loop):
        layer = _built(kind, return_sequences=True)
        if loop == "keras":
            layer = _plain(layer)
        mask = tf.constant(MASK)
        hidden = np.where(MASK[..., np.newaxis], INPUTS, np.nan)
        # Outputs at masked steps repeat those before them: all of them may count.
        got = recurrent.run(layer, hidden, "graph", mask=mask)
        truth = recurrent.run(layer, INPUTS, "graph", mask=mask)
        _close(got, truth, 1e-6)
        _, (slope, *_) = got
        assert np.all(slope.numpy()[~MASK] == 0)

    def test_infinity_in_padding_under_xla(self):
        layer = _built(layers.LayerNormLSTM)
        hidden = np.where(MASK[..., np.newaxis], INPUTS, np.inf)
        mask = tf.constant(MASK)
        got = recurrent.run(layer, hidden, "xla", mask=mask)
        _close(got, recurrent.run(layer, INPUTS, "eager", mask=mask))

    def test_the_same_padding_ruins_the_layer_of_keras(self):
        layer = keras.layers.LSTM(6)
        hidden = np.where(MASK[..., np.newaxis], INPUTS, np.nan)
        _, gradients = recurrent.run(layer, hidden, "graph", mask=tf.constant(MASK))
        assert any(np.isnan(gradient).any() for gradient in gradients)

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [(kind, mode) for kind in BOTH for mode in modes.MODES]
        + [(kind, "graph") for kind in KINDS[2:]],
    )
    def test_a_sample_that_nothing_asks_for_may_hold_nan(self, kind, mode):
        layer = _built(kind)
        broken = INPUTS.copy()
        broken[1, 2] = np.nan
        upstream = np.ones((3, 6), np.float32)
        upstream[1] = 0
        _, got = recurrent.run(layer, broken, mode, upstream)
        _, truth = recurrent.run(layer, INPUTS, "eager", upstream)
        _close(got, truth)

    @both
    def test_nan_behind_the_last_step_that_counts_is_not_differentiated(self, kind):
        layer = _built(kind, return_sequences=True)
        broken = INPUTS.copy()
        broken[:, 3:] = np.nan
        upstream = np.zeros((3, 5, 6), np.float32)
        upstream[:, :3] = 1
        _, got = recurrent.run(layer, broken, "graph", upstream)
        _, truth = recurrent.run(layer, INPUTS, "graph", upstream)
        _close(got, truth)

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            (layers.LayerNormLSTM, "eager"),
            (layers.LayerNormGRU, "graph"),
            (layers.LayerNormLSTM, "xla"),
        ],
    )
    def test_nan_that_counts_comes_out(self, kind, mode):
        broken = INPUTS.copy()
        broken[1, 2, 0] = np.nan
        value, _ = recurrent.run(_built(kind), broken, mode)
        assert np.isnan(value[1]).all()
        assert np.isfinite(value.numpy()[[0, 2]]).all()


def _largest_gradients(layer, counts):
    """Returns the largest slope in a weight at initialisation, for leading zeros."""
    shape = (4, 60, 8)
    layer.build(shape)

    @tf.function(autograph=False)
    def largest(x):
        with tf.GradientTape() as tape:
            loss = tf.reduce_mean(layer(x))
        weights = [weight.value for weight in layer.trainable_weights]
        slopes = tape.gradient(loss, weights)
        return tf.reduce_max(tf.stack([tf.reduce_max(tf.abs(x)) for x in slopes]))

    result = []
    for count in counts:
        x = np.random.default_rng(count).normal(size=shape).astype("float32")
        x[:, :count] = 0
        result.append(float(largest(x)))
    return np.array(result)


class TestZeroFrames:
    """Pre-padding with zeros: the state has no spread, and is not to be amplified."""

    @every_kind
    @pytest.mark.parametrize("epsilon", [1e-5, 1e-12])
    def test_leading_zero_frames_leave_the_gradients_bounded(self, kind, epsilon):
        keras.utils.set_random_seed(1)
        layer = kind(16, epsilon=epsilon)
        largest = _largest_gradients(layer, range(31))
        assert np.all((largest > 1e-3) & (largest < 10)), largest

    def test_the_textbook_form_blows_up(self):
        keras.utils.set_random_seed(1)
        layer = keras.layers.RNN(_TextbookCell(16, use_bias=False))
        none, many = _largest_gradients(layer, [0, 10])
        assert 1e-3 < none < 10
        assert not many < 1e10

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [
            (layers.LayerNormLSTM, "eager"),
            (layers.LayerNormGRU, "graph"),
            (layers.LayerNormGRU, "xla"),
        ],
    )
    def test_nothing_but_zero_frames(self, kind, mode):
        layer = kind(6, norm_shift_initializer=keras.initializers.Constant(0.3))
        x = np.zeros((2, 7, 3), np.float32)
        _, gradients = recurrent.run(layer, x, mode)
        assert all(np.all(np.abs(gradient) < 100) for gradient in gradients)


class _TextbookCell(keras.layers.LSTMCell):
    """The cell of `tf.contrib`, as written."""

    def call(self, inputs, states, training=False):
        def norm(x):
            centred = x - tf.reduce_mean(x, -1, keepdims=True)
            variance = tf.reduce_mean(centred**2, -1, keepdims=True)
            return centred * tf.math.rsqrt(variance + 1e-5)

        h, c = states
        total = tf.matmul(inputs, self.kernel) + tf.matmul(h, self.recurrent_kernel)
        i, f, g, o = (norm(x) for x in tf.split(total, 4, -1))
        c = norm(c * tf.sigmoid(f + 1) + tf.sigmoid(i) * tf.tanh(g))
        h = tf.tanh(c) * tf.sigmoid(o)
        return h, [h, c]


class TestDropout:
    @both
    @pytest.mark.parametrize("mask", ["step", "sequence"])
    @pytest.mark.parametrize("fused", [False, True])
    def test_it_acts_on_the_candidate_alone(self, kind, mask, fused):
        layer = kind(
            6,
            return_sequences=True,
            fused=fused,
            dtype="float64",
            recurrent_dropout=0.4,
            recurrent_dropout_mask=mask,
            seed=3,
        )
        layer.build(INPUTS.shape)
        weights = recurrent.randomise(layer)
        before = layer.cell.seed_generator.state.numpy()
        value = layer(INPUTS, training=True)
        layer.cell.seed_generator.state.assign(before)
        factors = layer.cell.candidate_mask(tf.zeros([3, 6], tf.float64), [5]).numpy()
        layer.cell.reset_recurrent_dropout_mask()
        assert set(np.unique(factors)) == {0.0, 1 / 0.6}
        truth = recurrent.reference(layer, INPUTS.astype(float), weights, factors)
        np.testing.assert_allclose(value, truth, 1e-12)

    @both
    def test_masks_per_step_are_fresh_at_every_step_and_call(self, kind, mode):
        cell = kind(64, recurrent_dropout=0.5, seed=1).cell
        cell.build((None, 4))

        def draw():
            return cell.candidate_mask(tf.zeros([8, 64]), [20])

        draw = modes.compile_for(mode, draw)
        one, other = draw().numpy(), draw().numpy()
        assert one.shape == (20, 8, 64)
        assert abs(one.mean() - 1) < 0.05
        # Of 10240 pairs of coins, a half agree.
        assert abs(np.mean(one == other) - 0.5) < 0.05
        assert abs(np.mean(one[1:] == one[:-1]) - 0.5) < 0.05

    @both
    def test_one_mask_per_sequence_is_drawn_anew_for_each_call(self, kind, mode):
        layer = kind(32, recurrent_dropout=0.5, recurrent_dropout_mask="sequence")
        layer.build(INPUTS.shape)
        call = modes.compile_for(mode, lambda: layer(INPUTS, training=True))
        assert not np.array_equal(call(), call())

    @both
    @pytest.mark.parametrize("mask", ["step", "sequence"])
    def test_nothing_is_dropped_outside_of_training(self, kind, mask):
        layer = kind(6, recurrent_dropout=0.5, recurrent_dropout_mask=mask, dropout=0.5)
        layer.build(INPUTS.shape)
        plain = kind(6)
        plain.build(INPUTS.shape)
        plain.set_weights(layer.get_weights()[: len(plain.get_weights())])
        np.testing.assert_array_equal(layer(INPUTS), plain(INPUTS))
        assert not np.allclose(layer(INPUTS, training=True), plain(INPUTS), rtol=1e-3)

    @both
    @pytest.mark.parametrize("mask", ["step", "sequence"])
    @pytest.mark.parametrize("mode", ["graph", "xla"])
    def test_the_cell_drops_in_the_loop_of_keras(self, kind, mask, mode):
        layer = kind(16, recurrent_dropout=0.5, recurrent_dropout_mask=mask)
        plain = keras.layers.RNN(layer.cell)
        plain.build(INPUTS.shape)
        call = modes.compile_for(mode, lambda: plain(INPUTS, training=True))
        one, other = call().numpy(), call().numpy()
        assert np.all(np.isfinite(one))
        assert not np.array_equal(one, other)

    @both
    def test_dropout_of_the_inputs_keeps_one_mask_for_all_steps(self, kind):
        layer = kind(6, dropout=0.5, seed=5, return_sequences=True)
        layer.build(INPUTS.shape)
        before = layer.cell.seed_generator.state.numpy()
        value = layer(INPUTS, training=True)
        layer.cell.seed_generator.state.assign(before)
        factors = layer.cell.get_dropout_mask(tf.ones([3, 4])).numpy()
        layer.cell.reset_dropout_mask()
        truth = layer(INPUTS * factors[:, np.newaxis])
        np.testing.assert_allclose(value, truth, 1e-6)
        # And in the loop of Keras.
        layer.cell.seed_generator.state.assign(before)
        _close(_plain(layer)(INPUTS, training=True), truth)

    def test_all_masks_are_drawn_before_the_loop(self):
        layer = layers.LayerNormLSTM(6, recurrent_dropout=0.5)
        layer.build(INPUTS.shape)
        function = tf.function(lambda: layer(INPUTS, training=True), autograph=False)
        graph = function.get_concrete_function().graph.as_graph_def()
        bodies = {
            node.attr["body"].func.name for node in graph.node if "While" in node.op
        }
        assert bodies
        for inner in graph.library.function:
            if inner.signature.name in bodies:
                assert not any("Random" in node.op for node in inner.node_def)


class TestDtypes:
    @every_kind
    @pytest.mark.parametrize(
        ("policy", "eps"),
        [("mixed_float16", 2**-10), ("mixed_bfloat16", 2**-7), ("float16", 2**-10)],
    )
    def test_half_precision_keeps_its_digits(self, kind, policy, eps):
        layer = _built(kind, dtype=policy, return_sequences=True)
        exact = kind(6, dtype="float64", return_sequences=True)
        exact.build(INPUTS.shape)
        # The weights as the products see them.
        exact.set_weights([
            np.asarray(tf.cast(tf.cast(w, layer.compute_dtype), tf.float64))
            if "kernel" in variable.name
            else w.astype("float64")
            for variable, w in zip(layer.weights, layer.get_weights(), strict=True)
            if "seed" not in variable.name
        ])
        x = np.asarray(tf.cast(tf.cast(INPUTS, layer.compute_dtype), tf.float64))
        value = layer(x)
        assert value.dtype == layer.compute_dtype
        error = np.abs(np.asarray(tf.cast(value, tf.float64)) - exact(x)).max()
        assert error < 20 * eps

    @both
    def test_statistics_are_taken_in_float32(self, kind):
        """Squares of 300 overflow float16."""
        layer = kind(6, dtype="mixed_float16")
        x = 300 * INPUTS
        _, gradients = recurrent.run(layer, x, "graph")
        assert np.all(np.isfinite(layer(x)))
        assert all(np.all(np.isfinite(gradient)) for gradient in gradients)
        for weight in layer.cell.trainable_weights:
            assert weight.dtype == "float32"

    @pytest.mark.parametrize(
        ("kind", "mode"),
        [(kind, mode) for kind in BOTH for mode in ("eager", "graph")]
        + [pytest.param(layers.LayerNormGRU, "xla", marks=pytest.mark.slow)],
    )
    def test_the_second_gradient_agrees_with_that_of_the_loop_of_keras(
        self, kind, mode
    ):
        layer = _built(kind, dtype="float64")
        x = tf.constant(INPUTS[:2, :2], tf.float64)

        def second(each, mode):
            return modes.second_gradient(lambda x: tf.reduce_sum(each(x) ** 2), x, mode)

        _close(second(layer, mode), second(_plain(layer), "eager"), 1e-10)


class TestInModels:
    @both
    def test_unknown_number_of_steps(self, kind, mode):
        layer = _built(kind, (None, None, 4), return_sequences=True)

        def step(x):
            with tf.GradientTape() as tape:
                value = layer(x)
            return value, tape.gradient(value, layer.trainable_weights[0].value)

        spec = tf.TensorSpec([None, None, 4], tf.float32)
        if mode == "eager":
            return
        compiled = tf.function(step, [spec], autograph=False, jit_compile=mode == "xla")
        for steps in (5, 3):
            _close(compiled(INPUTS[:, :steps]), step(tf.constant(INPUTS[:, :steps])))

    @both
    def test_an_empty_batch_has_an_empty_result(self, kind):
        value, gradients = recurrent.run(
            _built(kind), np.zeros((0, 5, 4), np.float32), "graph"
        )
        assert value.shape == (0, 6)
        assert all(np.all(gradient == 0) for gradient in gradients)

    @both
    def test_bidirectional(self, kind, tmp_path):
        model = keras.Sequential([
            keras.Input((None, 4)),
            keras.layers.Masking(),
            keras.layers.Bidirectional(kind(6, return_sequences=True)),
            keras.layers.Bidirectional(kind(6)),
        ])
        path = str(tmp_path / "model.keras")
        model.save(path)
        value = model(INPUTS)
        assert value.shape == (3, 12)
        np.testing.assert_allclose(keras.saving.load_model(path)(INPUTS), value, 1e-6)

    @both
    def test_clones_and_exports(self, kind, tmp_path):
        model = keras.Sequential([keras.Input((5, 4)), kind(6)])
        clone = keras.models.clone_model(model)
        clone.set_weights(model.get_weights())
        np.testing.assert_array_equal(clone(INPUTS), model(INPUTS))
        model.export(str(tmp_path / "exported"))
        exported = tf.saved_model.load(str(tmp_path / "exported"))
        _close(exported.serve(INPUTS), model(INPUTS), 1e-6)

    @both
    def test_stacked_cells(self, kind, tmp_path):
        cells = [kind.cell_class(units, recurrent_dropout=0.2) for units in (5, 3)]
        model = keras.Sequential([keras.Input((None, 4)), keras.layers.RNN(cells)])
        path = str(tmp_path / "model.keras")
        model.save(path)
        value = model(INPUTS)
        np.testing.assert_allclose(keras.saving.load_model(path)(INPUTS), value, 1e-6)
        one = kind(5, return_sequences=True)
        other = kind(3)
        for layer, cell in zip((one, other), cells, strict=True):
            layer.build((None, None, cell.kernel.shape[0]))
            layer.set_weights(cell.get_weights())
        _close(other(one(INPUTS)), value)

    @both
    def test_stateful(self, kind):
        layer = kind(6, stateful=True)
        first = layer(INPUTS)
        second = layer(INPUTS)
        assert not np.allclose(first, second, rtol=1e-2)
        layer.reset_state()
        np.testing.assert_array_equal(layer(INPUTS), first)
        whole = kind(6)
        whole.build((3, 10, 4))
        whole.set_weights(layer.cell.get_weights())
        _close(whole(np.concatenate([INPUTS, INPUTS], 1)), second)

    @both
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


class TestFromKeras:
    THEIRS: ClassVar = {
        layers.LayerNormLSTM: keras.layers.LSTM,
        layers.LayerNormGRU: keras.layers.GRU,
    }

    def _layer(self, kind, **options):
        layer = self.THEIRS[kind](6, bias_initializer="random_normal", **options)
        layer.build(INPUTS.shape)
        return layer

    @both
    def test_without_normalisation_it_is_the_same_function(self, kind):
        theirs = self._layer(
            kind, return_sequences=True, go_backwards=True, name="mine"
        )
        ours = kind.from_keras(theirs, layer_norm=False)
        assert ours.name == "mine"
        _close(ours(INPUTS), theirs(INPUTS), 1e-6)

    @both
    @pytest.mark.parametrize("fused", [False, True])
    def test_with_normalisation_it_starts_from_their_weights(self, kind, fused):
        theirs = self._layer(kind)
        ours = kind.from_keras(theirs, fused=fused)
        kernel, recurrent_kernel, bias = theirs.get_weights()
        np.testing.assert_array_equal(ours.cell.kernel, kernel)
        np.testing.assert_array_equal(ours.cell.recurrent_kernel, recurrent_kernel)
        if fused:
            np.testing.assert_array_equal(ours.cell.bias, bias)
        else:
            place = ours.cell.gate_shift.numpy()
            total = bias.reshape(-1, ours.cell.gates, 6).sum(0)
            np.testing.assert_allclose(place, total[: len(place)], 1e-6)
        assert np.all(np.isfinite(ours(INPUTS)))

    @both
    def test_a_cell(self, kind):
        theirs = self._layer(kind)
        ours = kind.cell_class.from_keras(theirs.cell, layer_norm=False)
        _close(keras.layers.RNN(ours)(INPUTS), theirs(INPUTS), 1e-6)

    @both
    def test_without_a_bias_and_before_it_is_built(self, kind):
        theirs = self._layer(kind, use_bias=False)
        _close(kind.from_keras(theirs, layer_norm=False)(INPUTS), theirs(INPUTS), 1e-6)
        unbuilt = self.THEIRS[kind](3, dropout=0.1)
        assert kind.from_keras(unbuilt).cell.dropout == 0.1
        cell = kind.cell_class.from_keras(unbuilt.cell)
        assert not cell.built

    @both
    def test_a_stateful_layer(self, kind):
        theirs = self._layer(kind, stateful=True)
        ours = kind.from_keras(theirs, layer_norm=False)
        _close(ours(INPUTS), theirs(INPUTS), 1e-6)

    @both
    def test_a_bias_without_a_place_is_left_out(self, kind):
        ours = kind.from_keras(self._layer(kind), layer_norm=False, use_bias=False)
        assert ours.cell.bias is None

    @both
    def test_another_layer_is_refused(self, kind):
        message = f"`from_keras` takes a keras.layers.{self.THEIRS[kind].__name__} here"
        with pytest.raises(TypeError, match=message):
            kind.from_keras(keras.layers.SimpleRNN(3))


@both
@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"dropout": 1.0}, ValueError, "`dropout` must be at least 0 .*dropout=1.0"),
        (
            {"recurrent_dropout": -0.1},
            ValueError,
            "`recurrent_dropout` must be at least 0 and below 1.*=-0.1",
        ),
        (
            {"recurrent_dropout": None},
            TypeError,
            "`recurrent_dropout` must be a number",
        ),
        (
            {"recurrent_dropout_mask": "batch"},
            ValueError,
            "`recurrent_dropout_mask` must be one of 'step', 'sequence'. .*'batch'",
        ),
        ({"layer_norm": "yes"}, ValueError, "`layer_norm` must be one of False, True"),
        ({"fused": None}, ValueError, "`fused` must be one of False, True"),
        (
            {"fused": True, "layer_norm": False},
            ValueError,
            "`fused` is a form of layer normalisation. Received: fused=True, layer",
        ),
        ({"epsilon": 0.0}, ValueError, "`epsilon` must be positive .*epsilon=0.0"),
        ({"epsilon": float("nan")}, ValueError, "`epsilon` must be .*epsilon=nan"),
        ({"epsilon": "tiny"}, TypeError, "`epsilon` must be a number"),
        (
            {"implementation": 1},
            TypeError,
            "`implementation` is not an argument of LayerNorm.*Cell. .* Leave it out.",
        ),
        ({"units": 0}, ValueError, "positive integer"),
    ],
)
def test_bad_options_are_refused(kind, options, error, message):
    options = {"units": 3, **options}
    for make in (kind, kind.cell_class):
        with pytest.raises(error, match=message):
            make(**options)
