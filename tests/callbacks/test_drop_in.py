"""The import-swap: `from tfsafe import callbacks`."""

import inspect

import keras
import pytest

from tfsafe import callbacks

SAFE = sorted(set(callbacks.__all__) & set(dir(keras.callbacks)))


def test_names_that_need_no_fix_are_keras_own():
    assert callbacks.TensorBoard is keras.callbacks.TensorBoard
    assert {"NumericsMonitor", "CSVLogger"} <= set(dir(callbacks))


@pytest.mark.parametrize("name", SAFE)
def test_arguments_are_those_of_keras_and_then_keywords(name):
    ours = list(inspect.signature(getattr(callbacks, name)).parameters.values())
    theirs = list(inspect.signature(getattr(keras.callbacks, name)).parameters)
    if not theirs:
        pytest.skip("This Keras has no argument here yet.")
    shared, more = ours[: len(theirs)], ours[len(theirs) :]
    assert [parameter.name for parameter in shared] == theirs
    assert all(parameter.kind is parameter.KEYWORD_ONLY for parameter in more)


def test_six_names_of_keras_are_made_safe():
    assert SAFE == [
        "BackupAndRestore",
        "EarlyStopping",
        "ModelCheckpoint",
        "ReduceLROnPlateau",
        "SwapEMAWeights",
        "TerminateOnNaN",
    ]
