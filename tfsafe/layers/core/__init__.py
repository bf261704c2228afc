"""Activations, dropout, embedding and preprocessing layers."""
