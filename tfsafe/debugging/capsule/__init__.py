"""Saves a call that failed to a zip file.

`snapshot` keeps the call and writes the file, `archive` reads and writes arrays, JSON
and graphs within a size limit, `records` turns traced graphs into plain data and back
and lists the operations that a capsule may have. No file holds pickled objects or code.

May import: `graph`, `debugging.explain` and what that may import. Example:
`checks.traced.compiled` makes a `Snapshot` of each failure, `entry.replay` reads it.
"""
