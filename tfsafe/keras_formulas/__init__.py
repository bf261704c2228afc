"""Keras' loss and metric formulas, with Keras' arguments."""
