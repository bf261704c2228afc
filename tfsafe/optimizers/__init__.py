"""Optimizers that one bad gradient cannot ruin, and Keras' own under the same name."""

from tfsafe._swap import fall_back_to_keras
from tfsafe.optimizers._loss_scale import LossScaleOptimizer
from tfsafe.optimizers._rmsprop import RMSprop
from tfsafe.optimizers._safe_optimizer import SafeOptimizer

__all__ = ["LossScaleOptimizer", "RMSprop", "SafeOptimizer"]

__getattr__, __dir__ = fall_back_to_keras(__name__, __all__)
