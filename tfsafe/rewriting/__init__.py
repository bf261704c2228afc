"""Rewrites the formulas of traced functions into their stable form.

`targets` has the public function, `reports` says and verifies what it did. `rules` is
the table of formulas; `match`, `analysis` and `log_space` recognise them in what
`facts` knows of a graph, and `engine` puts the stable form in their place. Each may
import those below it in `setup.cfg`, `tfsafe.graph` and `tfsafe.ops`.

Example: `stabilize(f)(x)` is `f(x)` where `f` is stable, and finite where it was not.
"""

from tfsafe.rewriting.reports.report import Change, Report
from tfsafe.rewriting.targets.stabilize import stabilize
from tfsafe.rewriting.targets.switch import disable_stabilize, enable_stabilize

__all__ = ["Change", "Report", "disable_stabilize", "enable_stabilize", "stabilize"]
