"""Shows what to do: the suggestion as a diff, and the traps that it avoids."""

import functools
import importlib.metadata
import linecache

from tfsafe._report import explain
from tfsafe._report.html import _diff
from tfsafe._report.html._drawing import coded, scrolling, sentence, text
from tfsafe._report.records import FindingFields

# At most this many measured traps are named.
_TRAPS = 3


def drawn(finding: FindingFields) -> list[str]:
    """Returns the elements of a page that show what to do."""
    if not finding.suggestion:
        return []
    code = finding.suggested_code
    source = _line(finding)
    new, needs = _diff.of_line(source, code, finding.replaces)
    if new:
        added = [f"<ins>+ {text(line)}</ins>" for line in (needs, new) if line]
        removed = f"<del>- {text(source)}</del>"
        added.insert(1 if needs else 0, removed)
        shown = [scrolling("".join(added), "diff")]
    else:
        shown = [scrolling(text(code), "code")] if code else []
    return [*shown, f"<p>{sentence(finding.suggestion)}</p>", *_traps(finding)]


def _line(finding: FindingFields) -> str:
    """Returns the line that changes: that of the failure, or a later one."""
    if finding.site is None or not finding.replaced_line:
        return finding.site.source if finding.site else ""
    return linecache.getline(finding.site.path, finding.replaced_line).strip()


def _traps(finding: FindingFields) -> list[str]:
    """Names the measured traps that the suggestion fixes, with links to their pages."""
    traps = list(explain.traps_of(finding).items())[:_TRAPS]
    if not traps:
        return []
    site = documentation()
    items = [
        (
            f'<a href="{site}/traps/{row}.html">{row}</a>' if site else row,
            coded(title),
        )
        for row, title in traps
    ]
    listed_traps = "; ".join(f"{row}, {title}" for row, title in items)
    return [f'<p class="note">Measured: {listed_traps}.</p>']


@functools.cache
def documentation() -> str:
    """Returns the address of the documentation, from `project_urls` of `setup.cfg`."""
    try:
        urls = importlib.metadata.metadata("tfsafe").get_all("Project-URL") or []
    except importlib.metadata.PackageNotFoundError:
        return ""
    named = dict(url.split(", ", 1) for url in urls)
    return named.get("Documentation", "").rstrip("/")
