"""Differences of nearly equal numbers, without the loss of their digits.

`uncancelled` has differences of elementary functions, `function_differences` those of
one function at two points, `log_complements` logarithms of 1 minus a probability.

May import: the other kernels.

Example: `function_differences.digamma_difference(x + 1.0, x)` of 1e8 is 1e-8.
"""
