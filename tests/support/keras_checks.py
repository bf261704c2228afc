"""What every Keras layer and loss of tfsafe has to survive.

A test file lists its cases and runs every check on each of them:

    CASES = [keras_checks.LayerCase(partial(SafeMeanPooling, axis=2), inputs=X)]

    @pytest.mark.parametrize("case", CASES, ids=str)
    @pytest.mark.parametrize("check", keras_checks.LAYER_CHECKS, ids=keras_checks.name)
    def test_pooling_is_at_home_in_keras(case, check, tmp_path):
        check(case, tmp_path)

`make` is called with `dtype=` where a check needs a policy of its own.
"""

import dataclasses
import functools
import inspect
import json
import pathlib
from collections.abc import Callable
from typing import Any

import keras
import numpy as np
import tensorflow as tf

from tests.support import modes
from tests.support.oracle import assert_close

HALVES = ("float16", "bfloat16")


@dataclasses.dataclass(frozen=True)
class LayerCase:
    """A layer and what to call it on.

    Attributes:
      make: Makes the layer; takes the keyword `dtype`.
      inputs: float32 array with the batch axis first and a last axis of features.
      mask: Booleans of shape (batch, steps) that a `Masking` layer attaches, or None.
      name: Shown in the test's id.
      cancels: How many roundings of the size of its largest result the layer has in
        half precision, where it computes sums in it as Keras does.
      spread: Makes the arguments of the call out of the inputs, and likewise out of
        their shape and their mask: `lambda x: (x, x)` for query and value.
    """

    make: Callable[..., keras.Layer]
    inputs: np.ndarray
    mask: np.ndarray | None = None
    name: str = "layer"
    cancels: float = 0
    spread: Callable[[Any], tuple[Any, ...]] = lambda x: (x,)

    def __str__(self) -> str:
        return self.name


@dataclasses.dataclass(frozen=True)
class LossCase:
    """A loss and what to call it on.

    Attributes:
      make: Makes the loss; takes the keyword `dtype`.
      y_true: Labels.
      y_pred: float32 predictions, with one loss for each position of the first axis,
        or of the first two where there are steps.
      activation: What the model's last layer applies, so that it predicts in the range
        of `y_pred`.
      name: Shown in the test's id.
    """

    make: Callable[..., keras.losses.Loss]
    y_true: np.ndarray
    y_pred: np.ndarray
    activation: str | None = None
    name: str = "loss"

    def __str__(self) -> str:
        return self.name


def name(check: Callable[..., None]) -> str:
    """Returns the id of a check."""
    if isinstance(check, functools.partial):
        return "_".join([check.func.__name__, *map(str, check.keywords.values())])
    return check.__name__


def round_trips_through_its_config(case: Any, _: pathlib.Path) -> None:
    made = case.make()
    config = json.loads(json.dumps(made.get_config()))
    assert type(made).from_config(config).get_config() == made.get_config()
    registered = keras.saving.get_registered_name(type(made))
    assert registered == f"tfsafe>{type(made).__name__}"
    module = keras.losses if isinstance(case, LossCase) else keras.layers
    again = module.deserialize(module.serialize(made))
    assert type(again) is type(made)
    _assert_same(_call(case, again), _call(case, made))


def survives_a_keras_file(case: Any, tmp_path: pathlib.Path) -> None:
    model = _model(case)
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.saving.load_model(path)
    _assert_same(again(case.inputs), model(case.inputs))


def can_be_cloned_and_exported(case: LayerCase, tmp_path: pathlib.Path) -> None:
    model = _model(case)
    clone = keras.models.clone_model(model)
    clone.set_weights(model.get_weights())
    _assert_same(clone(case.inputs), model(case.inputs))
    path = str(tmp_path / "exported")
    model.export(path)
    # Held by a name: its variables live as long as it does.
    loaded = tf.saved_model.load(path)
    _assert_same(loaded.serve(case.inputs), model(case.inputs))


def knows_its_shape_before_it_runs(case: LayerCase, _: pathlib.Path) -> None:
    layer, shape = case.make(), case.inputs.shape
    value = _call(case, layer)
    if not _takes_three_shapes(layer):
        assert tuple(layer.compute_output_shape(*case.spread(shape))) == value.shape
    for given in (shape[1:], (*[None] * (len(shape) - 2), shape[-1])):
        symbolic = case.make()(*case.spread(keras.Input(given)))
        assert value.shape[0] is not None
        assert symbolic.shape[0] is None
        assert len(symbolic.shape) == len(value.shape)
        for known, actual in zip(symbolic.shape[1:], value.shape[1:], strict=True):
            assert known in (None, actual)
        assert symbolic.dtype == value.dtype.name


def _takes_three_shapes(layer: keras.Layer) -> bool:
    """Returns whether this Keras asks for the shape of the keys of an attention."""
    is_attention = isinstance(layer, keras.layers.Attention)
    return is_attention and keras.__version__.startswith("3.10.")


def passes_masks_on(case: LayerCase, _: pathlib.Path) -> None:
    mask = np.ones(case.inputs.shape[:2], bool) if case.mask is None else case.mask
    hidden = np.where(_over_features(mask, case.inputs), case.inputs, -99.0)
    layer = case.make()
    masked = keras.layers.Masking(-99.0)(tf.constant(hidden, tf.float32))
    result = layer(*case.spread(masked))
    arguments = [case.spread(x)[0] for x in (case.inputs, tf.constant(mask))]
    if "mask" in inspect.signature(layer.call).parameters:
        inputs = tf.nest.map_structure(tf.constant, arguments[0])
        _assert_same(result, layer(inputs, mask=arguments[1]))
    expected = layer.compute_mask(*arguments)
    # A layer behind it is handed the mask.
    seen = _SeesMask()(result)
    assert (seen is None) == (expected is None)
    if expected is not None:
        np.testing.assert_array_equal(seen, expected)


def keeps_the_dtype_policy(case: LayerCase, _: pathlib.Path, *, policy: str) -> None:
    layer = case.make(dtype=policy)
    half = layer.compute_dtype
    value = layer(*case.spread(tf.constant(case.inputs)))
    assert value.dtype.name == half
    wide, inputs = case.make(dtype="float64"), tf.constant(case.inputs, tf.float64)
    wide(*case.spread(inputs))
    # An initializer draws other numbers in another dtype.
    wide.set_weights(layer.get_weights())
    truth = wide(*case.spread(inputs))
    size = case.cancels * np.abs(truth).max()
    assert_close(value, truth, 2, scale=size)


def trains(
    case: LayerCase, _: pathlib.Path, *, mode: str, policy: str = "float32"
) -> None:
    inputs = keras.Input(case.inputs.shape[1:])
    # What stands before the layer moves only if a gradient comes through it.
    x = _dense(case.inputs.shape[-1], dtype=policy)(inputs)
    x = case.make(dtype=policy)(*case.spread(x))
    x = _dense(1, dtype="float32")(keras.layers.Flatten()(x))
    _assert_fit_moves(
        keras.Model(inputs, x), "mse", mode, case.inputs, case.inputs[:, :1].mean(-1)
    )


def learns(
    case: LossCase, _: pathlib.Path, *, mode: str, policy: str = "float32"
) -> None:
    classes = case.y_pred.shape[-1]
    inputs = keras.Input(case.y_pred.shape[1:])
    outputs = _dense(classes, dtype=policy, activation=case.activation)(inputs)
    model = keras.Model(inputs, outputs)
    _assert_fit_moves(model, case.make(), mode, case.y_pred, case.y_true)


def is_saved_with_its_model(case: LossCase, tmp_path: pathlib.Path) -> None:
    model = keras.Sequential([keras.Input(case.y_pred.shape[1:])])
    model.add(keras.layers.Activation(case.activation or "linear"))
    model.compile(loss=case.make())
    path = str(tmp_path / "model.keras")
    model.save(path)
    again = keras.saving.load_model(path)
    assert again.loss.get_config() == model.loss.get_config()
    before, after = (
        m.evaluate(case.y_pred, case.y_true, verbose=0) for m in (model, again)
    )
    assert before == after
    assert np.isfinite(before)


def takes_unknown_shapes(case: LossCase, _: pathlib.Path) -> None:
    def spec(x: np.ndarray, last: int | None) -> tf.TensorSpec:
        return tf.TensorSpec([*[None] * (x.ndim - 1), last], x.dtype)

    true_ndim = case.y_true.ndim
    last = case.y_true.shape[-1] if true_ndim == case.y_pred.ndim else None
    traced = tf.function(
        case.make(),
        input_signature=[
            spec(case.y_true, last),
            spec(case.y_pred, case.y_pred.shape[-1]),
        ],
        autograph=False,
    )
    _assert_same(traced(case.y_true, case.y_pred), _call(case, case.make()))


def leaves_masked_steps_out(case: LossCase, _: pathlib.Path) -> None:
    if case.y_pred.ndim != 3:
        return
    mask = np.ones(case.y_pred.shape[:2], bool)
    mask[0, -1] = False
    hidden = np.where(mask[..., None], case.y_pred, -99.0).astype("float32")
    masked = keras.layers.Masking(-99.0)(tf.constant(hidden))
    _assert_same(
        case.make()(case.y_true, masked),
        case.make()(case.y_true[mask][None], case.y_pred[mask][None]),
    )


def takes_half_precision(case: LossCase, _: pathlib.Path, *, dtype: str) -> None:
    half = tf.cast(case.y_pred, dtype)
    value = case.make()(case.y_true, half)
    # Computed in float32: what the rounded predictions cost, and no more.
    _assert_same(value, case.make()(case.y_true, tf.cast(half, tf.float32)))
    assert case.make(dtype=dtype)(case.y_true, half).dtype.name == dtype


_MODES = [{"mode": mode} for mode in modes.MODES]
_POLICIES = [{"policy": f"mixed_{half}"} for half in HALVES]

LAYER_CHECKS = [
    round_trips_through_its_config,
    survives_a_keras_file,
    can_be_cloned_and_exported,
    knows_its_shape_before_it_runs,
    passes_masks_on,
    *[functools.partial(keeps_the_dtype_policy, **policy) for policy in _POLICIES],
    *[functools.partial(trains, **mode) for mode in _MODES],
    *[functools.partial(trains, mode="graph", **policy) for policy in _POLICIES],
]

LOSS_CHECKS = [
    round_trips_through_its_config,
    is_saved_with_its_model,
    takes_unknown_shapes,
    leaves_masked_steps_out,
    *[functools.partial(takes_half_precision, dtype=half) for half in HALVES],
    *[functools.partial(learns, **mode) for mode in _MODES],
    *[functools.partial(learns, mode="graph", **policy) for policy in _POLICIES],
]


class _SeesMask(keras.layers.Layer):
    """Returns the mask that reaches it."""

    supports_masking = True

    def call(self, inputs: tf.Tensor, mask: Any = None) -> Any:
        return mask


def _dense(units: int, **options: Any) -> keras.layers.Dense:
    return keras.layers.Dense(
        units, kernel_initializer=keras.initializers.GlorotUniform(seed=1), **options
    )


def _model(case: LayerCase) -> keras.Model:
    inputs = keras.Input(case.inputs.shape[1:])
    return keras.Model(inputs, case.make()(*case.spread(inputs)))


def _call(case: Any, made: Any) -> tf.Tensor:
    if isinstance(case, LossCase):
        return made(case.y_true, case.y_pred)
    return made(*case.spread(case.inputs))


def _over_features(mask: np.ndarray, inputs: np.ndarray) -> np.ndarray:
    return mask.reshape(mask.shape + (1,) * (inputs.ndim - mask.ndim))


def _assert_same(got: Any, expected: Any) -> None:
    assert_close(got, expected, scale=np.abs(expected).max())
    assert np.all(np.isfinite(got))


def _assert_fit_moves(
    model: keras.Model, loss: Any, mode: str, x: np.ndarray, y: np.ndarray
) -> None:
    """Fits one step in `mode`: all weights stay finite, and each of them moves."""
    model.compile(
        optimizer=keras.optimizers.SGD(0.1),
        loss=loss,
        run_eagerly=mode == "eager",
        jit_compile=mode == "xla",
    )
    before = [weight.numpy() for weight in model.trainable_weights]
    history = model.fit(x, y, batch_size=len(x), verbose=0)
    assert np.isfinite(history.history["loss"]).all()
    for old, weight in zip(before, model.trainable_weights, strict=True):
        assert np.isfinite(weight.numpy()).all()
        assert not np.array_equal(old, weight.numpy()), f"{weight.path} did not move"
