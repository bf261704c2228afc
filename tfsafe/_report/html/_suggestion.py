"""Shows what to do: the suggestion as a diff, and the traps that it avoids."""

import functools
import importlib.metadata
import linecache
import textwrap

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
    source, number = _source(finding)
    change = _diff.of_line(source, code, finding.replaces, number)
    if change:
        added = [f"<ins>+ {text(change.needs)}</ins>"] if change.needs else []
        removed = textwrap.dedent(change.old).split("\n")
        added += [f"<del>- {text(line)}</del>" for line in removed]
        added.append(f"<ins>+ {text(change.new.strip())}</ins>")
        shown = [scrolling("".join(added), "diff")]
    else:
        shown = [scrolling(text(code), "code")] if code else []
    return [*shown, f"<p>{sentence(finding.suggestion)}</p>", *_traps(finding)]


def _source(finding: FindingFields) -> tuple[str, int]:
    """Returns the user's file with the number of the line that changes.

    Where the file is not as it was, the line alone.
    """
    site = finding.site
    if site is None:
        return "", 1
    if linecache.getline(site.path, site.line).strip() != site.source:
        return "" if finding.replaced_line else site.source, 1
    lines = linecache.getlines(site.path)
    return "".join(lines), finding.replaced_line or site.line


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
