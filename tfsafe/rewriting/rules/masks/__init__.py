"""Rules for values that are computed everywhere and used only where a mask keeps them.

`masking` stops the gradient of what is not used, `empty_sums` gives means of nothing
their value, `singular_gradients` handles functions without a slope at a point.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`, `rewriting.analysis`.

Example: the gradient of `tf.where(x > 0, tf.math.log(x), 0.0)` becomes finite at 0.
"""
