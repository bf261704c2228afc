"""Applies the engine to functions, Keras losses, Keras models and whole programs.

`stabilize` is the public function and sends each target to its module. `keras_loss`
wraps a loss, `keras_model` replaces the steps and the call of a model, `replicas` those
of a model on several devices. `switch` patches `tf.function` and `keras.Model` so that
a whole program runs in its stable form.

May import: `engine`, `reports`, the table of rules, `tfsafe.graph`, `tfsafe._faults`,
`tfsafe._patching` and `tfsafe._compat`.

Example: `stabilize(model)` passes a model on to `keras_model.stabilize_model`.
"""
