"""Rules for quotients that have a limit where both of their sides are 0.

`removable` holds the rule for `f(x) / x`, with `vanishing_functions` as its list,
`removable_pairs` for two functions and `divided_differences` for one at two points;
`quotients` holds the rule for other points and two arguments; `fields` formulas of
single fields, for both; `flat_limits` the rule for what an exponential makes 0, and
`odd_functions` that for slopes at 0.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`, `rewriting.analysis`.

Example: `(tf.exp(x) - 1) / x` becomes `exprel`, 1 at 0.
"""
