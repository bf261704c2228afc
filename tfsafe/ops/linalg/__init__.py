"""Functions of matrices: determinants, inverses, and functions of their spectrum.

`matrix` checks matrices, flattens their batches and zeroes the gradients of matrices
with zero upstream; `elimination` and `divided_differences` have the algorithms. May
import `kernels`.

    from tfsafe import ops
    ops.det(a)  # the gradient is right also where the determinant is 0

`tfsafe.ops` lists what is public.
"""
