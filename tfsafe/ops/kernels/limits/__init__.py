"""Quotients with a limit where both of their sides vanish, and their like.

`removable` has functions of one argument with a hole at 0, `quotients` those with two
arguments or a hole elsewhere, `divided_differences` one function at two points,
`field_limits` formulas of single fields, `tangents` a function less its tangent,
`fractions` quotients whose sides overflow or underflow.

May import: the other kernels. Example: `removable.sinc(x)` is 1 at 0, its slope 0.
"""
