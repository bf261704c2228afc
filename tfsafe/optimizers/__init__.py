"""Optimizers that survive non-finite gradients, and Keras' other ones by their names.

Knows how an optimizer takes a step, in float16 and under a distribution strategy too,
and which gradients it may not use. May import `ops`, `_compat` and the modules at the
root of tfsafe, never `callbacks`.

Example: `SafeOptimizer.apply` tests gradients with `_gradient_check.is_short`, counts
the step in its `StepCounters`, and calls the inner optimizer.
"""

from typing import TYPE_CHECKING

from tfsafe._swap import fall_back_to_keras
from tfsafe.optimizers._loss_scale import LossScaleOptimizer
from tfsafe.optimizers._rmsprop import RMSprop
from tfsafe.optimizers._safe_optimizer import SafeOptimizer

if TYPE_CHECKING:
    from tfsafe.optimizers._keras_names import *  # noqa: F403

__all__ = ["LossScaleOptimizer", "RMSprop", "SafeOptimizer"]

# Hidden from type checkers, which are to report a misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = fall_back_to_keras(__name__, __all__)
