"""Holds the rewrite rules: one row a formula, with its stable form and its reference.

A folder holds what goes wrong in one way. Each module is a family and ends in its table
`RULES`; `table` puts the families in the order in which they are tried and checks the
names. A formula that is a fixed tree needs no Python: its row has
`match=Trees(Tree(("Sub", ("Exp", "x"), 1), ops.expm1))`. Other rules have a function
that takes the last operation of the formula and the reader of its graph. The arithmetic
itself belongs to `tfsafe.ops`, here it is only chosen.

May import: `tfsafe.ops`, `tfsafe.graph` and the rest of `rewriting` but `targets` and
`reports`.

Example: `table.chosen(rules="log-of-softmax")` returns that rule alone.
"""
