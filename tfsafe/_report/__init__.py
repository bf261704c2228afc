"""The text and the page of a report: of findings, data, optimizers and rewrites.

`finding` is what a check found, `records` its plain data, `explain` its lines, `html`
its page, `text` and `caller` what all use, `catalogue` the measured traps by name
(generated).

May import: nothing else of tfsafe, and neither TensorFlow nor NumPy at import.

Example: `explain.lines_of(finding)` is what the terminal shows.
"""
