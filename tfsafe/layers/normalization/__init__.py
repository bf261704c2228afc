"""Normalization layers that keep their digits at a large mean.

The formulas are kernels of `tfsafe.ops`; the layers keep weights, axes and dtypes.
`per_sample.py` normalizes by the values of a sample, `batch.py` by those of a batch,
`adapted.py` by those of a dataset, `spectral.py` a kernel by its norm.

May import `tfsafe.ops`, `tfsafe._compat` and the modules of `tfsafe.layers`.

    x = tfsafe.layers.LayerNormalization()(x)
"""
