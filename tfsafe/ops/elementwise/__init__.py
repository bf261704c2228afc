"""Operations on one or two tensors, element by element.

Each function checks its arguments, opens a name scope, and computes half precision in
float32; the formula and its gradient are in `tfsafe.ops.kernels`. May import `kernels`
and the modules below `tfsafe.ops`, not `nn`, `reductions` or `linalg`.

    from tfsafe import ops
    ops.log(x)  # slope 0 at 0

`tfsafe.ops` lists what is public.
"""
