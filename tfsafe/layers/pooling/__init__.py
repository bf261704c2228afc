"""Pooling layers that respect the mask.

`safe_mean.py` averages over any axes, `keras_pooling.py` has the layers of Keras over
steps. A sequence or a window in which no step counts gives `empty_value`, with gradient
0.

May import `tfsafe.ops`, `tfsafe._compat` and the modules of `tfsafe.layers`.

    x = tfsafe.layers.GlobalAveragePooling1D()(x, mask=mask)
"""
