"""Says what is known about the tensors of a traced graph before it runs.

`tensors.Reader` answers for one graph: which operation made a tensor, whether it is a
constant, a mask, a probability, the same as another. `bounds` limits its elements from
below and above, `finiteness` finds where non-finite values may begin and where they may
be dropped. `spellings` has a reader see operations as rules know them, `x / y` for
`x * (1 / y)`: `identities` lists them, `sums` knows those over axes, `moves` formulas
within another shape or dtype, and `layouts` what only arranges numbers. What is unknown
is False. `interface` has the types through which these modules refer to each other.

May import: `tfsafe.graph` and `tfsafe._limits`.

Example: `reader.bounds(tf.nn.softmax(x) + 1)` is `Bounds(low=1, high=2)`.
"""
