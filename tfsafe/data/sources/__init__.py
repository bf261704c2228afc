"""Reads rows out of arrays, frames, nested structures and pipelines."""
