"""Logarithms of the outputs of single operations: one module a kind of operation.

`gathers`, `segments`, `matrices`, `lists` and `loops` follow the tensors through
TensorFlow's operations; `normal`, `own_terms` and `quotients` recognise formulas.

May import: `log_space.form`, `log_space.sums`, `log_space.probabilities`.

Example: `gathers` finds the logarithm of `tf.gather(softmax, label)`.
"""
