"""The import-swap: one import line moves a program from Keras to tfsafe and back."""

import json
import os
import pathlib
import subprocess
import sys

import keras
import pytest

import tfsafe
import tfsafe.layers as tl
from tfsafe import callbacks, layers, losses, optimizers

SWAPPED = [layers, losses, optimizers, callbacks]
NAMESAKES = [keras.layers, keras.losses, keras.optimizers, keras.callbacks]
pairs = pytest.mark.parametrize(
    ("ours", "theirs"),
    list(zip(SWAPPED, NAMESAKES, strict=True)),
    ids=["layers", "losses", "optimizers", "callbacks"],
)


def public(module):
    return {name for name in dir(module) if not name.startswith("_")}


@pairs
def test_every_public_name_of_keras_is_answered(ours, theirs):
    own = set(ours.__all__)
    for name in public(theirs) - own:
        assert getattr(ours, name) is getattr(theirs, name), name
    assert set(dir(ours)) == public(theirs) | own
    for name in own:
        assert getattr(ours, name).__module__.startswith("tfsafe.")


def test_both_ways_of_importing_work():
    from tfsafe.losses import Loss, StableCrossEntropy

    assert Loss is keras.losses.Loss
    assert tl.Dense is keras.layers.Dense
    assert StableCrossEntropy is losses.StableCrossEntropy


@pytest.mark.parametrize(
    ("module", "name", "message"),
    [
        (losses, "MeanSquaredErrror",
         "module 'tfsafe.losses' has no attribute 'MeanSquaredErrror', and neither has "
         r"'keras.*losses'. Did you mean 'MeanSquaredError'"),
        (losses, "StableCrossentropy", "Did you mean 'StableCrossEntropy'"),
        (layers, "Zzz", r"and neither has 'keras.*layers'\.$"),
    ],
)  # fmt: skip
def test_an_unknown_name_is_refused_with_what_was_meant(module, name, message):
    with pytest.raises(AttributeError, match=message):
        getattr(module, name)


def run(program, home, **environment):
    return subprocess.run(
        [sys.executable, "-c", program],
        capture_output=True,
        text=True,
        env={**os.environ, "KERAS_HOME": str(home), **environment},
    )


@pytest.mark.parametrize("how", ["environment", "keras.json"])
def test_another_backend_is_refused_before_keras_is_imported(how, tmp_path):
    program = (
        "import sys\n"
        "import tfsafe\n"
        "assert tfsafe.__version__\n"
        "try:\n"
        "    import tfsafe.layers\n"
        "finally:\n"
        "    assert 'keras' not in sys.modules\n"
    )
    environment = {"KERAS_BACKEND": "jax"}
    if how == "keras.json":
        (tmp_path / "keras.json").write_text(json.dumps({"backend": "jax"}))
        environment = {"KERAS_BACKEND": ""}
    result = run(program, tmp_path, **environment)
    assert result.returncode == 1
    assert (
        "ImportError: tfsafe's losses, layers and optimizers run on Keras' TensorFlow "
        "backend. Received: backend 'jax'. Set KERAS_BACKEND=tensorflow before the "
        "first `import keras`"
    ) in result.stderr


MYPY = """
from tfsafe.losses import Circle, StableCrossEntropy
import tfsafe.layers as L
loss = StableCrossEntropy(from_logits=True, labels="sparse")
other = Circle()
layer = L.Dense(3)
own = L.SafeMeanPooling(axis=(1, 2))
typo = StableCrossEntropy(lables="sparse")
"""


@pytest.mark.slow
def test_type_checkers_find_the_names(tmp_path):
    pytest.importorskip("mypy")
    (tmp_path / "user.py").write_text(MYPY)
    command = ["-m", "mypy", "--strict", "--follow-imports=silent", "--config-file="]
    result = subprocess.run(
        [sys.executable, *command, "user.py"],
        capture_output=True,
        text=True,
        cwd=tmp_path,
        env={**os.environ, "MYPYPATH": str(pathlib.Path(tfsafe.__file__).parents[1])},
        check=False,
    )
    errors = [line for line in result.stdout.splitlines() if " error: " in line]
    assert len(errors) == 1, result.stdout
    assert 'Unexpected keyword argument "lables"' in errors[0]
