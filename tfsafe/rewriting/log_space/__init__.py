"""Finds the logarithm of a tensor, through all the operations that made it.

`form.Factored` is a tensor as a weight times an exponential. `analysis.Logarithms` has
the one of each tensor of a graph: `by_operation` has one case for each operation type;
`sums`, `gathers` and `complements` have the longer cases; `probabilities` and
`logsumexp_by_hand` recognise a softmax, a sigmoid and a log-sum-exp in any spelling. A
`Factored` names the rule of `rules.logarithms` that applies to its logarithm.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.facts`, `rewriting.match`.

Example: of `exp(x) / sum(exp(x))` it is `log_softmax(x)`, by the rule "log-of-softmax".
"""
