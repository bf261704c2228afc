"""The code that a finding suggests to write instead.

`fixes` is the table, one row a fix; `choice` takes the row that fits the operation and
its cause; `source_names`, `formulas_by_hand` and `statements` read the user's own names
off the source.

May import: `explain.training`, `tfsafe.graph`, `tfsafe.errors`.

Example: `tf.math.log(p)` of 0 gets `tfsafe.ops.log(p)`, with the user's own `p`.
"""
