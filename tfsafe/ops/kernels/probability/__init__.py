"""Softmax and cross-entropies, in log space where needed.

`probabilities` has the softmax itself, `exponential_sums` its logarithm and that of a
sum of exponentials, `cross_rows` and `cross_probabilities` the cross-entropies of
logits and of probabilities.

May import: the other kernels.

Example: `exponential_sums.masked_logsumexp(z, None, -1)` of 1000 and 1000 is 1000.69.
"""
