"""Lists the rewritten formulas of a program by line, at the end of `tfsafe run`."""

from collections.abc import Sequence

from tfsafe.errors import last_error
from tfsafe.graph import is_library_code, locate
from tfsafe.rewriting.engine.planner import Rewrite

# Number of lines with rewrites that are named.
_MOST = 20
_OF_LIBRARIES = "formulas of Keras and tfsafe"
_UNCHECKED = (
    "nothing was checked: outside its domain a formula is NaN in its stable form too, "
    "which `--checks watch` finds."
)
_FAILED = ", which is not finite in its stable form either: see the finding"


def rewrites_by_line(rewrites: Sequence[Rewrite], is_checked: bool) -> list[str]:
    """Lists the rewritten formulas by line of the script.

    Args:
      rewrites: What was rewritten.
      is_checked: Whether the program ran under the checks.

    Returns:
      A heading and a line each. A line in which the last finding of the program is says
      so: outside its domain, a formula is NaN in its stable form too. The last line
      says that of a program without checks.
    """
    error = last_error()
    failed = {each.site.place for each in error.findings if each.site} if error else ()
    rules: dict[str, dict[str, None]] = {}
    ends: dict[str, str] = {}
    for rule, op in rewrites:
        site = locate(op).site
        where = f"{site.place} in {site.function}" if site else "libraries"
        where = _OF_LIBRARIES if is_library_code(op) else where
        rules.setdefault(where, {})[rule.name] = None
        ends[where] = _FAILED if site and site.place in failed else ""
    of_libraries = rules.pop(_OF_LIBRARIES, {})
    last = [f"{_OF_LIBRARIES}: {', '.join(of_libraries)}"] if of_libraries else []
    if not rules:
        return ["no formula of the script had to be rewritten.", *last]
    lines = [
        f"{where}: {', '.join(names)}{ends[where]}" for where, names in rules.items()
    ]
    more = [f"and {len(lines) - _MOST} more lines"] if len(lines) > _MOST else []
    return [
        "formulas were rewritten to their stable form:",
        *lines[:_MOST],
        *more,
        *last,
        *([] if is_checked else [_UNCHECKED]),
    ]
