"""Rules for lengths, deviations and angles, written out by hand.

`lengths` and `norms` recognise square roots of sums of squares, `angles` arc functions
whose argument rounds to 1.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`, `rewriting.analysis`.

Example: `tf.sqrt(tf.reduce_sum(x * x))` becomes `ops.norm(x)`, slope 0 at 0.
"""
