"""Checks of functions that TensorFlow has traced.

`compiled` checks each call, `late` looks now and then, `in_graph` makes a function that
holds its checks, `instrumented` emits a copy with flags on the operations that a level
checks, and `watched_call` describes what is called in place of the user's function.

May import: what `debugging.checks` may, and the modules of `checks` itself.

Example: `instrumented` chooses every operation for `checks="full"`.
"""
