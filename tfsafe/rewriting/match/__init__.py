"""Patterns that formulas are made of."""
