"""Follows non-finite values from operation to operation.

`provenance` knows the origin of each non-finite value and the path it took. It receives
the operations of a replayed `tf.function` from `replay` and `replayed_call`, and those
of eager code from `eager_recorder`. `batch_rows` knows the row of the batch,
`values` what is a number, and which overflow a division hides.

It may import `graph`, `checks.variables` and `checks.failures`, and the labels of
`explain.results`. The first non-finite value of a call:

    propagation = Propagation(lambda value: "")
    follow(concrete.graph, inputs, propagation)
    propagation.all[:1]
"""
