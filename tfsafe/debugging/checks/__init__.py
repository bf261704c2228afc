"""Runs functions under numeric checks: eager, traced, or a whole program.

`checked` and `switch` are what users call; `compiled` checks a `tf.function`, `eager`
a Python function, `eager_session` the eager code of one thread, `in_graph` a function
that is exported. `failures` decides what is a failure. `options` and `levels` hold what
the user chose, `variables` restores state, `deferred_writes` delays it.

It may import `graph`, `debugging.tracing`, `debugging.explain` and, for models,
`debugging.models`. One check, of a function that is traced already:

    check = CompiledCheck(function, options=options_of("watch", False, ()))
    check(x)  # what `function(x)` returns, or NumericsError
"""
