"""The public ways into the checks.

`checked` checks a function or a model, `switch` everything that runs while the checks
are on, `replay` a call from a capsule.

May import all other packages of `debugging`; none of them may import it.

Example: `checked(f)` is a `CompiledCheck` or an `EagerCheck` of `debugging.checks`, or
passes a model on to `debugging.models`.
"""
