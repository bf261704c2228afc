"""Sums, means, norms and extrema along axes."""
