"""Explains findings: causes, suggestions, layers and the text of the error.

Knows why an operation makes non-finite values (`causes`, a table of rules), what to
write instead (`suggestions`, a table of fixes, filled with the user's own expressions),
which layer an operation belongs to and what came before the failure (`training`), and
how a finding and its error are put together (`findings`, `outside`, `message`).

May import: `graph`, `debugging.inspection` and what that may import.

    cause, fault = causes.cause_of("Log", evidence)  # "log of 1 zero (at (2, 0)).", ...
"""
