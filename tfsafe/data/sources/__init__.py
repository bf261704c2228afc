"""Reads rows out of arrays, frames, nested structures and pipelines.

Knows how each kind of container stores its rows, how to take and to fill them, and how
to name its leaves; it does not know which policy is applied. May import the modules
at the root of tfsafe.

Example: `container_of(array, "x").take(keep)` returns the kept rows as an array.
"""
