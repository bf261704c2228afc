"""Formulas with a limit where both sides of a quotient vanish.

`removable` has functions of one argument with a hole at 0, `quotients` those with two
arguments or a hole elsewhere, `field_limits` formulas of single fields,
`entropies_of_order` entropies of any order, also 1, `normal_hazards` hazards of normal
distributions; `interpolation` continues a function that has no series here.

    from tfsafe.ops.formulas.limits import removable
    removable.expm1_over_x(x)  # 1 at 0, and its slope is 1/2
"""
