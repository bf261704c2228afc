"""Layers without a family: activations, dropout, embedding, masking, categories.

Each file has one layer of Keras, or a few alike, with the inputs that Keras' own treats
differently in eager mode and under XLA: an id that the table lacks, a NaN among
categories, a rate of 1, a vector of zeros.

May import `tfsafe.ops`, `tfsafe._compat` and the modules of `tfsafe.layers`.

    x = tfsafe.layers.Embedding(1000, 64, mask_zero=True)(ids)
"""
