"""Rules for softmax, sigmoid, logarithms of probabilities, entropies and likelihoods.

`exponentials` recognises what was written with exponentials, `log_space` and
`logarithms` its logarithm, `roots` roots of probabilities, `entropies` products with a
logarithm, `likelihoods` large terms that cancel, `inverse_functions` a function of its
own inverse.

May import: `tfsafe.ops`, `tfsafe.graph`, `rewriting.match`, `rewriting.analysis`,
`rewriting.log_space`.

Example: `tf.exp(z) / tf.reduce_sum(tf.exp(z))` becomes a softmax.
"""
