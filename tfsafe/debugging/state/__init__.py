"""What a checked call writes: found, delayed until it is finite, and restored.

`variables` reads and restores what a call may change, `update_part` finds the part of a
graph that computes new values, `deferred_writes` delays the writes.

May import: `tfsafe.graph`, `debugging.values`. Example: a step with a NaN gradient
leaves weights and optimizer slots as they were.
"""
