"""Formulas that several operations share: values with their gradients."""
