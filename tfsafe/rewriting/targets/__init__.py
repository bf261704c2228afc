"""Applies the engine to functions, Keras losses, Keras models and whole programs.

`stabilize` is the public function and sends each target to its module. `function`
makes a `tf.function` of the stable form, `keras_loss` wraps a loss, `keras_model`
replaces the steps of a model. `switch` patches `tf.function` and `keras.Model` so that
a whole program runs in its stable form.

May import: `engine`, `reports`, the table of rules, `tfsafe.graph`, `tfsafe._faults`,
`tfsafe._patching` and `tfsafe._compat`.

Example: `function.stabilized(f, all_rules())` is `f` as a stable `tf.function`.
"""
