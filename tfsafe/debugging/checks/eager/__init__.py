"""Checks of operations that run eagerly.

`function` checks one Python function, `session` all operations of one thread while the
checks are switched on.

May import: what `debugging.checks` may, and the modules of `checks` itself.

Example: `tf.math.log(-1.0)` inside `with check_numerics():` raises `NumericsError`.
"""
