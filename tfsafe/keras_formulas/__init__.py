"""Keras' loss and metric formulas, with Keras' loose arguments.

Knows how Keras lays out labels and predictions, which logits are behind probabilities,
and where a formula is bounded. Each function converts its arguments once, is registered
for saving once, and calls the kernels of `tfsafe.ops`; losses and metrics of Keras'
names, and `StableCrossEntropy`, are shells around it.

May import `tfsafe.ops`, the modules at the root, and Keras; not losses or metrics.

    from tfsafe.keras_formulas import crossentropy
    crossentropy.sparse_categorical_crossentropy([0, 2], probabilities)
"""
