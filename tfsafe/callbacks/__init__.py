"""Keras callbacks that handle NaN, and Keras' other callbacks under their names.

Knows which state of a model a training step changes, and when Keras calls which event.
May import `optimizers`, `debugging`, `graph`, `_compat` and the modules at the root of
tfsafe.

Example: `_training.safe_optimizer(model.optimizer)` returns the `SafeOptimizer` that
Keras' wrappers hold, and `NumericsMonitor` reads its counts.
"""

from typing import TYPE_CHECKING

from tfsafe._swap import fall_back_to_keras
from tfsafe.callbacks._checkpoint import (
    BackupAndRestore,
    EarlyStopping,
    ModelCheckpoint,
    ReduceLROnPlateau,
    SwapEMAWeights,
)
from tfsafe.callbacks._monitor import NumericsMonitor
from tfsafe.callbacks._rollback import RollbackOnNonFinite
from tfsafe.callbacks._terminate import TerminateOnNaN, TerminateOnNonFinite

if TYPE_CHECKING:
    from tfsafe.callbacks._keras_names import *  # noqa: F403

__all__ = [
    "BackupAndRestore",
    "EarlyStopping",
    "ModelCheckpoint",
    "NumericsMonitor",
    "ReduceLROnPlateau",
    "RollbackOnNonFinite",
    "SwapEMAWeights",
    "TerminateOnNaN",
    "TerminateOnNonFinite",
]

# Hidden from type checkers, which are to report a misspelled name.
if not TYPE_CHECKING:
    __getattr__, __dir__ = fall_back_to_keras(__name__, __all__)
