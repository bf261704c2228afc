"""Finds the faults in data, and reports them.

Knows the kinds of faults, counts them by column (`tally`), decides which of them are
errors (`severity`), and turns them into findings, notes and a `DataReport`. It does not
know which policy is applied. May import `data/sources` and the modules at the root of
tfsafe, never `data/checks`.

Example: `data/checks/policies.py` feeds a `Survey` and asks it for `report()`.
"""
