"""Keras callbacks that no NaN deceives, and Keras' own under the same name."""

from tfsafe._swap import fall_back_to_keras
from tfsafe.callbacks._checkpoint import BackupAndRestore, ModelCheckpoint
from tfsafe.callbacks._monitor import NumericsMonitor
from tfsafe.callbacks._plateau import EarlyStopping, ReduceLROnPlateau
from tfsafe.callbacks._rollback import RollbackOnNonFinite
from tfsafe.callbacks._swap_ema import SwapEMAWeights
from tfsafe.callbacks._terminate import TerminateOnNaN, TerminateOnNonFinite

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

__getattr__, __dir__ = fall_back_to_keras(__name__, __all__)
