"""Logarithms of tensors, found from the operations that compute them."""
