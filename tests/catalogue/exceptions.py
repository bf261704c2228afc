"""The measured traps that no library at this level can fix, each with the reason."""

_LOST = (
    "In eager mode no record says which operation a tensor came from. "
    "In a `tf.function` and in `fit` the logits are found. In eager mode pass logits "
    "and `from_logits=True`."
)

# By the row's identifier, with a note where only a part of the row is meant.
EXCEPTIONS = {
    "L02": (
        "CategoricalCrossentropy of a raw tf.nn.softmax that underflowed to 0; Keras "
        "fails in eager mode alone",
        _LOST,
    ),
    "L06, eager": (
        "CategoricalCrossentropy of a reshaped softmax, in eager mode",
        _LOST,
    ),
    "L06b, eager": (
        "CategoricalCrossentropy of a masked softmax, in eager mode",
        _LOST,
    ),
    "Y63": (
        "Dense layers under mixed_float16 whose sum exceeds 65504",
        "The result itself has no float16 number. Use mixed_bfloat16, or "
        '`dtype="float32"` for that layer; `tfsafe.checked` names the layer.',
    ),
    "T12": (
        "float32 numbers below 1.2e-38 become 0",
        "TensorFlow's kernels and XLA flush them in the processor.",
    ),
}
