"""Formulas without a public operation, which `tfsafe.rewriting` puts in a program.

Quotients with a limit where both of their sides vanish: `removable` has functions of
one argument with a hole at 0, `quotients` those with two arguments or a hole elsewhere,
`divided_differences` one function at two points, `field_limits` formulas of single
fields, `tangents` a function less its tangent, `fractions` quotients whose sides
overflow or underflow, `harmonic` sums of reciprocals.

Differences of nearly equal numbers: `uncancelled` has those of elementary functions,
`function_differences` those of one function at two points, `log_complements` logarithms
of 1 minus a probability, `angles` angles whose cosine rounds to 1.

`weighted_exponentials`, `entropies_of_order`, `log_products` and `bessel` leave no
range; `unchanged_values` keeps a value as written and gives it another gradient.

May import: the public operations of `tfsafe.ops`, and `kernels`; no operation is made
of these formulas.

    from tfsafe.ops.formulas import removable
    removable.sinc(x)  # 1 at 0, and its slope is 0
"""
