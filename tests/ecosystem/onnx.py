"""Exports each layer to ONNX, ours and its counterpart in Keras, and runs both.

    python -m tests.ecosystem.onnx [LAYER ...]

Prints what each does, and ends with 1 if the lists in `tests/test_serving.py`, which
are those of the guide, say something else.
"""

import argparse
import pathlib
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

import keras
import numpy as np
import onnxruntime

import tfsafe
from tests.support.oracle import assert_close
from tests.test_serving import MADE, NEEDS_TO_KERAS, NOT_IN_ONNX, model_of


def problem(model: keras.Model, x: np.ndarray) -> str | None:
    """Returns why a model does not run in ONNX with the same results, or None."""
    expected = np.asarray(model(x))
    with tempfile.TemporaryDirectory() as folder:
        path = str(pathlib.Path(folder) / "model.onnx")
        try:
            model.export(path, format="onnx", verbose=False)
            session = onnxruntime.InferenceSession(path)
            (source,) = session.get_inputs()
            (found, *_) = session.run(None, {source.name: x})
            why = "ONNX has exponentials and sums of its own"
            assert_close(found, expected, 800, why=why, scale=0.1)
        except Exception as error:
            return str(error).strip()[-200:].replace("\n", " ")
    return None


def outcome(name: str) -> tuple[str, dict[str, str]]:
    """Returns how a layer is converted, and what fails in which way."""
    ours: Any = model_of(name)
    x = MADE[name][1]
    why = problem(ours, x)
    if why is None:
        return "as it is", {}
    plain = problem(tfsafe.to_keras(ours), x)
    if plain is None:
        return "after to_keras", {"ours": why}
    return "not", {"ours": why, "Keras": plain}


def main(arguments: Sequence[str] | None = None) -> int:
    """Prints a line for each layer and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("layers", nargs="*")
    names = parser.parse_args(arguments).layers or [*MADE]
    expected = dict.fromkeys(NEEDS_TO_KERAS, "after to_keras")
    expected |= dict.fromkeys(NOT_IN_ONNX, "not")
    wrong = 0
    for name in names:
        found, why = outcome(name)
        is_wrong = found != expected.get(name, "as it is")
        wrong += is_wrong
        print(f"{name}: {found}{' (not as listed)' if is_wrong else ''}", flush=True)
        if is_wrong:
            print(*(f"  {way}: {text}" for way, text in why.items()), sep="\n")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
