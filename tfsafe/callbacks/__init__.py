"""Keras callbacks that report what went wrong, and Keras' own under the same name."""

from tfsafe._swap import fall_back_to_keras
from tfsafe.callbacks._monitor import NumericsMonitor

__all__ = ["NumericsMonitor"]

__getattr__, __dir__ = fall_back_to_keras(__name__, __all__)
