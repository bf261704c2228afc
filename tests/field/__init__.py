"""Small programs in the style of public guides, run with and without tfsafe.

    python -m tests.field                 every program in every way
    python -m tests.field vae gan         these programs
    python -m tests.field --way full vae  in one way

`programs/` holds the programs, `ways.py` how each one is run in its process, and
`__main__.py` starts the processes and compares exit codes and printed numbers.
`broken/` holds programs with a numerical failure, `findings.py` what is found in each.
"""
