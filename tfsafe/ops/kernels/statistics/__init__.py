"""Means, variances and normalisation by them.

`moments` reduces what a mask keeps, `running_statistics` joins batches, and
`standardization` and `layer_norm` normalise by the values' own moments.

May import: the other kernels. Example: `moments.variance(x, axis=-1)`.
"""
