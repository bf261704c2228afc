"""Holds limits of formulas that single fields use, for the rules that look them up.

`hyperbolic` matches differences such as the Brillouin function of magnets, `sabr` the
quotient of a model of volatilities, `truncated_normals` means of a distribution that is
cut off; `field_limits` lists the formulas that are fixed trees.

May import: what `rules.limits` may, and `vanishing_functions` of it.

Example: `(1 + z * x) ** (-1 / z)`, of extreme values, is `exp(-x)` at `z = 0`.
"""
