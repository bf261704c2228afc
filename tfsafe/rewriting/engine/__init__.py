"""Traces a function, chooses what to replace and emits the stable form.

`rule.Rule` is one row of the table of rules. `function.stabilized` is a function in its
stable form; for each of its traces, `retrace.rewritten` emits the function into the
trace being made, with the replacements that `planner.Planner` chose. The gradients
that the function asks of its own tapes are recorded by `tape_recording` and recomputed
from the stable form by `gradient_requests`. The rules themselves are passed in.

May import: `tfsafe.graph`, `facts` and the modules at the root of tfsafe.

Example: within a trace, `rewritten(tf.function(f), all_rules(), [x], {})` returns the
stable value of `f(x)` and the list of rewrites.
"""
