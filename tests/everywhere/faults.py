"""What goes wrong in the matrix: each failure, and the line that is to be named."""

from collections.abc import Callable
from typing import Any, NamedTuple

import tensorflow as tf

from tfsafe.errors import Finding


def _healthy(x):
    return x * x + 1.0


def _root_of_negatives(x):
    return tf.sqrt(x - 3.0) * 2.0  # forward_nan


def _log_of_zero(x):
    return tf.math.log(x - 1.0) + 1.0  # forward_inf


def _root_of_zero(x):
    return tf.sqrt(x - 1.0) + 1.0  # backward_nan


def _step(gradient):
    return 0.125 * gradient


def _normed_step(gradient):
    zero = gradient * 0.0
    return zero / tf.abs(zero)  # update_nan


class Fault(NamedTuple):
    """A failure of a training step.

    Attributes:
      op: Type of the operation to be named; empty where the data are bad.
      core: What the model computes.
      update: How far a gradient moves the weights.
      is_gradient: Whether the operation is of the backward pass.
      name: Of the failure; the line to be named ends in it.
    """

    op: str = ""
    core: Callable[[Any], Any] = _healthy
    update: Callable[[Any], Any] = _step
    is_gradient: bool = False
    name: str = ""

    @property
    def is_in_training(self) -> bool:
        """Whether it takes a backward pass or an update to fail."""
        return self.is_gradient or self.update is not _step

    @property
    def line(self) -> int:
        """Number of the line that is to be named."""
        with open(__file__, encoding="utf-8") as file:
            lines = file.read().splitlines()
        (number,) = [i for i, line in enumerate(lines, 1) if line.endswith(self.mark)]
        return number

    @property
    def mark(self) -> str:
        return f"  # {self.name}"


HEALTHY = Fault(name="healthy")
FAULTS = {
    fault.name: fault
    for fault in (
        Fault("Sqrt", _root_of_negatives, name="forward_nan"),
        Fault("Log", _log_of_zero, name="forward_inf"),
        Fault("SqrtGrad", _root_of_zero, is_gradient=True, name="backward_nan"),
        Fault("RealDiv", update=_normed_step, name="update_nan"),
        Fault(name="input_nan"),
    )
}


def batch(fault: Fault) -> tf.Tensor:
    """Returns the batch with which a program fails."""
    last = float("nan") if fault.name == "input_nan" else 2.5
    return tf.constant([[1.0, 2.0, 2.5], [1.5, 1.0, last]])


def assert_is(finding: Finding, fault: Fault) -> None:
    """Holds a finding to the operation and the line that are at fault."""
    if not fault.op:
        assert finding.origin.startswith("argument `"), finding
        assert (finding.kind, finding.index, finding.row) == ("NaN", (1, 2), 1)
        return
    assert finding.op_type == fault.op, finding
    assert finding.is_gradient == fault.is_gradient, finding
    assert finding.site is not None
    assert (finding.site.path, finding.site.line) == (__file__, fault.line), finding
    assert finding.site.source.endswith(fault.mark)
