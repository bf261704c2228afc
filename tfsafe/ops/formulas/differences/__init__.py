"""Differences of nearly equal numbers, computed without the loss of their digits.

`uncancelled` has those of elementary functions, `function_differences` those of one
function at two points and `divided_differences` the same over the distance of the
points, `tangents` a function less its tangent, `changes` what a formula changes by in a
step, `fraction_complements` what a fraction leaves of a tensor, `log_complements`
logarithms of 1 minus a probability, `angles` angles whose cosine rounds to 1.

    from tfsafe.ops.formulas.differences import uncancelled
    uncancelled.one_minus_cos(x)  # x ** 2 / 2 near 0
"""
