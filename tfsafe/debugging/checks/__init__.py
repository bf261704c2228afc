"""Runs functions under numeric checks, and replays the calls that fail.

`traced` has the checks of what TensorFlow has traced, `eager` those of eager code.
`replayed_call` follows a failed call from the same state, `failures` decides what is a
failure, `options` holds what the user chose, `enclosing` finds the checks around a
call, `tally` marks and counts what runs under checks.

May import: `graph` and the packages of `debugging` but `models` and `entry`. One check,
of a function that is traced already:

    check = CompiledCheck(function, options=options_of("watch", False, ()))
    check(x)  # what `function(x)` returns, or NumericsError
"""
