"""Rules for differences of nearly equal numbers.

`cancellation` has fixed formulas, `function_differences` one function at two points,
`complements` 1 minus a product, `near_one` what is near 1, `tangents` a function less
its tangent, `divergences` weighted logarithms, `moments` and `raw_moments` variances
from raw moments, `distances` distances from products.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`, `rewriting.analysis`.

Example: `tf.exp(x) - 1` becomes `tf.math.expm1(x)`.
"""
