"""Formulas without a public operation, which `tfsafe.rewriting` puts in a program.

`limits` has formulas with a limit where they have no value, `differences` those of
nearly equal numbers, `out_of_range` those whose parts overflow or vanish where their
result does not; `unchanged_values` keeps TensorFlow's value and gives it another
gradient.

May import: the public operations of `tfsafe.ops`, and `kernels`; no operation is made
of these formulas. Differences may use the other folders, and `out_of_range` the limits.

    from tfsafe.ops.formulas.differences import uncancelled
    uncancelled.one_minus_cos(x)  # x ** 2 / 2 near 0
"""
