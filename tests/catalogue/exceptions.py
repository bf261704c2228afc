"""The measured traps that no library at this level can mend, each with the reason."""

EXCEPTIONS = {
    "Y63": (
        "Dense layers under mixed_float16 whose sum exceeds 65504",
        "The result itself has no float16 number. Use mixed_bfloat16, or "
        '`dtype="float32"` for that layer; `tfsafe.checked` names the layer.',
    ),
}
