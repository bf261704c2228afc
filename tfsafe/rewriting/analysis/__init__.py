"""Finds where a formula has no value, leaves the range or loses its digits.

`holes` finds the points where an elementwise formula has a limit but no value, which
`candidates` chooses and `elementwise` tries on numbers; `vanishing` what makes a
product or a sum 0, and `empty_data` quotients that are 0 / 0 without data. `degrees`
finds products that leave the range, `raw_moments` averages whose difference cancels.
`near_one` takes 1 from a tensor without loss of digits, `ratios` divides one sum by
another by what they have in common, and `wider` computes in float64.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match` and what that may.

Example: of `(tf.exp(x) - 1) / x`, `holes.of` finds the hole at `x = 0`.
"""
