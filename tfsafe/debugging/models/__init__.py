"""Checks the training, evaluation and prediction steps of Keras models."""
