"""Rules for quotients that have a limit where both of their sides are 0.

`removable` holds the rule for `f(x) / x`, with `vanishing_functions` as its list and
`removable_pairs` for two functions; `quotients` holds the rule for other points and two
arguments, with `hyperbolic`, `sabr` and `field_limits` for formulas of single fields.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`.

Example: `(tf.exp(x) - 1) / x` becomes `exprel`, 1 at 0.
"""
