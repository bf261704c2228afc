"""Reports the rewrites of a function and verifies them.

`report` lists what was rewritten, with the line, both formulas and the reason. `verify`
finds the rewrites that lose digits. `forms` runs both forms of a function, values and
gradients, on the same arguments and state, and a copy of the naive form in float64, for
a comparison.

May import: `engine`, `tfsafe.graph` and the modules at the root of tfsafe.

Example: `print(report.report_of(stable, [x], {}))` prints the rewrites for `x`.
"""
