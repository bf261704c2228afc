"""Formulas with their gradients, on tensors that are converted already.

`zeros` decides what 0 * x, x / 0 and log(0) give, and gives functions their slopes
(`with_slope`); `precision` scales and widens; `lengths` has norms and the functions of
two coordinates; `sums` adds up whole tensors; the other modules have elementary
functions. A folder a topic: `probability` and `statistics`.

Kernels check no arguments, open no name scopes, and import other kernels, `_compat`,
`_gradients` and `_limits` only. `rewriting`, `layers` and `keras_formulas` may import
them:

    from tfsafe.ops.kernels.zeros import quotient
    quotient(x, y)  # 0 where y is 0, and so is its gradient
"""
