"""Operations of neural networks: activations, softmax, cross entropies, clipping.

Each function checks its arguments, opens a name scope, and computes half precision in
float32; the formula and its gradient are in `tfsafe.ops.kernels`. May import `kernels`
and `reductions`.

    from tfsafe import ops
    ops.softmax(logits, mask=mask)  # 0 in a row without an element

`tfsafe.ops` lists what is public; `classes` has the labels and the class axis.
"""
