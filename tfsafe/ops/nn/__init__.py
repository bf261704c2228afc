"""Activations, softmax, cross-entropies, normalisation and clipping."""
