"""Follows non-finite values from operation to operation."""
