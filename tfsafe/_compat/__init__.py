"""Wraps everything that depends on versions or internals of TensorFlow and Keras.

This is the only package that may use a private name. Each use names the versions that
it was tried with; `tests/test_compat.py` fails when such a name disappears. May import
nothing else of tfsafe.

Example: `losses` and `metrics` call `_compat.keras_mask(tensor)` in place of reading
`tensor._keras_mask`.
"""

from tfsafe._compat._backend import (
    keras_class,
    require_tensorflow_backend,
)
from tfsafe._compat._conventions import (
    before_vectorizing,
    differentiated_type,
    forward_scope,
    is_loop_counter,
    is_python_thread,
)
from tfsafe._compat._execution import (
    GRADIENT_FRAMES,
    add_eager_callback,
    before_autograph,
    called_function,
    differentiated,
    eager_callback,
    record,
    remove_eager_callback,
    watch,
)
from tfsafe._compat._functions import (
    SAVED_TRACES,
    autograph_options,
    forget_conversion,
    function_graph,
    is_called_in_place,
    is_xla,
    register_gradient,
    registered_gradient,
    release_gradient,
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
    is_called_with_mask,
    is_keras_variable,
    keras_logits,
    keras_mask,
    loss_is_divided_by_replicas,
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
from tfsafe._compat._saving import load_on_demand

__all__ = [
    "GRADIENT_FRAMES",
    "OPTIMIZER_INTERNALS",
    "SAVED_TRACES",
    "add_eager_callback",
    "all_layers",
    "attention_dropout",
    "autograph_options",
    "before_autograph",
    "before_vectorizing",
    "built_variables",
    "called_function",
    "carry_keras_logits",
    "centered_moments",
    "differentiated",
    "differentiated_type",
    "eager_callback",
    "forget_conversion",
    "forward_scope",
    "function_graph",
    "is_called_in_place",
    "is_called_with_mask",
    "is_keras_variable",
    "is_loop_counter",
    "is_python_thread",
    "is_xla",
    "keras_class",
    "keras_logits",
    "keras_mask",
    "load_on_demand",
    "loss_is_divided_by_replicas",
    "loss_options",
    "record",
    "register_gradient",
    "registered_gradient",
    "release_gradient",
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
    "watch",
    "with_body",
    "without_weight_decay",
]
