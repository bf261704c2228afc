"""Operations along axes: norms, moments, sums of exponentials, running products.

Each function checks its arguments, opens a name scope, and computes half precision in
float32; the formula and its gradient are in `tfsafe.ops.kernels`. May import `kernels`.

    from tfsafe import ops
    ops.mean(x, axis=-1, mask=mask)  # 0 where the mask keeps nothing

`tfsafe.ops` lists what is public.
"""
