"""Knows the names by which TensorFlow and Python mark operations and threads.

None of them is documented. Tried: TensorFlow 2.16.1 and 2.21.0, Python 3.11.
"""

import threading
from typing import Any


def is_python_thread() -> bool:
    """Returns whether Python started this thread.

    TensorFlow runs a `tf.py_function` in threads of its own, for which `threading`
    makes an object named "Dummy-1" and so on.
    """
    return not threading.current_thread().name.startswith("Dummy-")


def host_array(value: Any) -> Any:
    """Returns a tensor with a value, or what `np.asarray` takes, as an array.

    `np.asarray` raises for a scalar tensor of bfloat16, whose `__array__` returns a
    number. Tried: TensorFlow 2.21.0.
    """
    import numpy as np

    return np.asarray(value.numpy() if hasattr(value, "numpy") else value)


def is_loop_counter(name: str) -> bool:
    """Returns whether a tensor of this name is the counter that a `while_loop` adds."""
    return "loop_counter" in name


def before_vectorizing(name: str) -> str | None:
    """Returns the name of the operation that `tf.vectorized_map` replaced, or None.

    `loop_body/Sqrt` for `loop_body/Sqrt/pfor/...`.
    """
    return name.rpartition("/pfor/")[0] or None


def forward_scope(name: str) -> str:
    """Returns the name scope of an operation, without the one around gradients.

    `tf.GradientTape` puts its operations into "gradient_tape/", `tf.gradients` into
    "gradients/".
    """
    name = name.removeprefix("gradient_tape/").rpartition("gradients/")[2]
    return name.rpartition("/")[0]


def differentiated_type(path: str, function: str) -> str:
    """Returns the type of operation that a gradient function differentiates, or "".

    TensorFlow names the functions `_RealDivGrad` or `_SelectGradV2`, in files such as
    `math_grad.py`.
    """
    if path.endswith("_grad.py") and "Grad" in function:
        return function.strip("_").replace("Grad", "")
    return ""
