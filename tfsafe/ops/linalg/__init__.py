"""Determinants, inverses and functions of eigenvalues of matrices."""
