"""What editors, type checkers and `help` know of the public names."""

import inspect
import re

import pytest

import tfsafe
from tests.typing import keras_names
from tfsafe import layers, losses
from tfsafe.layers import options as typed_options


@pytest.mark.parametrize("package", keras_names.PACKAGES)
def test_type_checkers_know_every_name_that_is_kerass(package):
    listed = re.findall(r" as (\w+),$", keras_names.path(package).read_text(), re.M)
    # The list is that of the newest Keras; older ones have fewer names.
    assert set(keras_names.names(package)) <= set(listed), (
        "write the list with `python -m tests.typing --write`"
    )
    assert set(listed).isdisjoint(getattr(tfsafe, package).__all__)


@pytest.mark.parametrize("package", [*keras_names.PACKAGES, "ops", "debugging", "data"])
def test_signatures_name_every_argument(package):
    module = getattr(tfsafe, package)
    for name in module.__all__:
        thing = getattr(module, name)
        if not callable(thing) or (
            isinstance(thing, type) and issubclass(thing, tuple)
        ):
            continue
        signature = inspect.signature(thing)
        assert " object at 0x" not in str(signature), name
        # Those of a wrapper are those of its function; Keras' callback warns of its.
        if isinstance(thing, type) and name not in (
            "MeanMetricWrapper", "ReduceLROnPlateau",
        ):  # fmt: skip
            assert "*args" not in str(signature), name
            assert "**" not in str(signature), name


def test_options_for_type_checkers_are_those_that_signatures_show():
    for options, kind in (
        (typed_options.AnyCellOptions, layers.LayerNormLSTMCell),
        (typed_options.CellOptions, layers.LayerNormGRUCell),
        (typed_options.LayerNormalizationOptions, layers.LayerNormalization),
        (typed_options.LayerOptions, layers.LogSigmoid),
    ):
        shown = set(inspect.signature(kind).parameters)
        named = {"units", "activation", "recurrent_activation", "use_bias"}
        # Keras warns of a shape.
        hidden = {"rms_scaling"} | named
        assert set(options.__annotations__) - {"input_shape"} == shown - hidden


@pytest.mark.parametrize(
    ("kind", "expected"),
    [
        (
            layers.LayerNormLSTM,
            "(units: int, activation: Any = 'tanh', recurrent_activation: Any = "
            "'sigmoid', use_bias: bool = True, *, return_sequences: bool = False",
        ),
        (layers.LayerNormLSTMCell, "(units: int, activation: Any = 'tanh', "),
    ],
)
def test_a_recurrent_layer_shows_the_options_of_its_cell(kind, expected):
    signature = inspect.signature(kind)
    assert str(signature).startswith(expected)
    options = {"dropout", "recurrent_dropout", "forget_bias", "seed", "name", "dtype"}
    assert options <= set(signature.parameters)
    # Those have one value here.
    assert {"unit_forget_bias", "implementation"}.isdisjoint(signature.parameters)
    positional = [
        p for p in signature.parameters.values() if p.kind == p.POSITIONAL_OR_KEYWORD
    ]
    assert [p.name for p in positional] == [
        "units", "activation", "recurrent_activation", "use_bias",
    ]  # fmt: skip


def test_a_subclass_has_a_signature_of_its_own():
    class Narrow(losses.MeanSquaredError):
        def __init__(self, scale, *, name="narrow"):
            super().__init__(name=name)

    assert str(inspect.signature(Narrow)) == "(scale, *, name='narrow')"
    assert "reduction" in inspect.signature(losses.MeanSquaredError).parameters


def test_an_object_that_is_called_has_the_signature_of_its_call():
    called = inspect.signature(losses.MeanSquaredError())
    assert list(called.parameters) == ["y_true", "y_pred", "sample_weight"]


@pytest.mark.parametrize("function", [tfsafe.checked, tfsafe.stabilize])
def test_a_decorator_shows_that_its_target_may_be_absent(function):
    target = inspect.signature(function).parameters["target"]
    assert target.default is ...
    with pytest.raises(TypeError, match="Received: target=None"):
        function(None)
    assert callable(function())
