"""Attention layers of Keras that are safe for masks and half precision.

Knows what may attend to what, and that a query without a key gives 0. `attention.py`
has the layers without heads, `multi_head.py` those with heads. Masked inputs become 0
before Keras' layer multiplies them, because 0 * NaN is NaN.

May import `tfsafe.ops`, `tfsafe._compat` and the modules of `tfsafe.layers`.

    x = tfsafe.layers.MultiHeadAttention(num_heads=8, key_dim=64)(x, x)
"""
