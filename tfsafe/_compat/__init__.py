"""Everything that depends on the version or the internals of TensorFlow and Keras.

The only package that may touch a private name. Each use says which versions were
tried; `tests/test_compat.py` fails loudly when one of them goes.
"""

from tfsafe._compat._backend import (
    keras_class,
    require_tensorflow_backend,
)
from tfsafe._compat._execution import (
    GRADIENT_FRAMES,
    add_eager_callback,
    before_autograph,
    called_function,
    differentiated,
    eager_callback,
    remove_eager_callback,
)
from tfsafe._compat._functions import (
    autograph_options,
    function_graph,
    is_xla,
    registered_gradient,
    strategy_needs_merge_call,
    with_body,
)
from tfsafe._compat._keras import (
    OPTIMIZER_INTERNALS,
    all_layers,
    attention_dropout,
    built_variables,
    carry_keras_logits,
    centered_moments,
    keras_logits,
    keras_mask,
    loss_options,
    set_keras_logits,
    set_keras_mask,
    set_path,
    spectrogram_parts,
    strategy_of,
    sublayers,
    tf_variable,
    variable_key,
    variable_positions,
    without_weight_decay,
)

__all__ = [
    "GRADIENT_FRAMES",
    "OPTIMIZER_INTERNALS",
    "add_eager_callback",
    "all_layers",
    "attention_dropout",
    "autograph_options",
    "before_autograph",
    "built_variables",
    "called_function",
    "carry_keras_logits",
    "centered_moments",
    "differentiated",
    "eager_callback",
    "function_graph",
    "is_xla",
    "keras_class",
    "keras_logits",
    "keras_mask",
    "loss_options",
    "registered_gradient",
    "remove_eager_callback",
    "require_tensorflow_backend",
    "set_keras_logits",
    "set_keras_mask",
    "set_path",
    "spectrogram_parts",
    "strategy_needs_merge_call",
    "strategy_of",
    "sublayers",
    "tf_variable",
    "variable_key",
    "variable_positions",
    "with_body",
    "without_weight_decay",
]
