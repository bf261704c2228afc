"""Rules for formulas whose parts leave the range of their dtype on the way.

`products` computes logarithms of products by those of the factors, `powers` powers
through their logarithm, `fractions` quotients whose sides overflow together, `harmonic`
sums of reciprocals, `standardised_moments` skewness and kurtosis, `half_precision`
computes a part in float32.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`, `rewriting.analysis`,
`rewriting.log_space`.

Example: `x**3 / y**3` of 1e30 becomes `(x / y)**3`.
"""
