"""Saves a call that failed to a zip file, and replays it from there.

`snapshot` keeps the call and writes the file, `archive` reads and writes arrays, JSON
and graphs within a size limit, `records` turns traced graphs into plain data and back,
`allowed` lists the operations that a capsule may have, `replay` runs one. No file holds
pickled objects or code.

It may import `graph`, `debugging.checks`, `debugging.explain` and `debugging.tracing`;
`checks.compiled` makes a `Snapshot` of each failure. One replay:

    error = replay("nan.zip")  # a NumericsError, or None if all values are finite
"""
