"""Follows non-finite values from operation to operation.

`provenance` knows the origin of each non-finite value and the path it took, as records
of `origins`. It receives
the operations of a replayed `tf.function` from `replay`, and those of eager code from
`eager_recorder`. `batch_rows` knows the row of the batch, `lost_digits` the zeros that
a cancellation or an underflow left, `results` names the results of a call.

May import: `graph`, `debugging.state`, `debugging.values`. The first non-finite value
of a call:

    propagation = Propagation(lambda value: "")
    follow(concrete.graph, inputs, propagation)
    propagation.all[:1]
"""
