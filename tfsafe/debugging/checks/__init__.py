"""Runs functions under numeric checks: eager, traced, or a whole program.

`checked` and `switch` are what users call; `traced` has the checks of what TensorFlow
has traced, `eager` those of eager code, `state` what a call writes. `failures` decides
what is a failure, `options` holds what the user chose, `enclosing` and `reentrancy`
know the checks around, `tally` counts.

It may import `graph`, `debugging.tracing`, `debugging.explain` and, for models,
`debugging.models`. One check, of a function that is traced already:

    check = CompiledCheck(function, options=options_of("watch", False, ()))
    check(x)  # what `function(x)` returns, or NumericsError
"""
