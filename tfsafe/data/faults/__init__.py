"""Finds what is wrong with data, and reports it."""
