"""Recurrent layers: those of Keras made safe, and those with layer normalization.

`keras_recurrent.py` wraps the layers of Keras for padding of NaN and for sequences
without a step. `layer_norm_lstm.py` and `layer_norm_gru.py` define cells, whose weights
and options `cells.py` has; `layer.py` runs a cell over time with the loop of `scan.py`;
`activations.py` differentiates their activations.

May import `tfsafe.ops`, `tfsafe._gradients` and the modules of `tfsafe.layers`.

    x = tfsafe.layers.LayerNormLSTM(64, return_sequences=True)(x)
"""
