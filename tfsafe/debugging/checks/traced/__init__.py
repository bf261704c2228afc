"""Checks of functions that TensorFlow has traced.

`compiled` checks each call, `late` looks now and then, `in_graph` makes a function that
holds its checks, `instrumented` emits a copy with flags on its operations, `levels`
says which, and `watched_call` describes what is called in place of the user's function.

May import: what `debugging.checks` may, and the modules of `checks` itself.

Example: `levels` chooses every operation for `checks="full"`.
"""
