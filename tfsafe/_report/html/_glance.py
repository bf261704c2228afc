"""Answers the usual questions about a finding in a few rows, at the top of a page."""

import re
from collections.abc import Iterable

from tfsafe._report import explain as _explain, text as _text
from tfsafe._report.html import _sample
from tfsafe._report.html._drawing import coded, text
from tfsafe._report.records import FindingFields, Sample

# Fewer steps before a failure show no trend.
_FEW = 5
# Lines of a message that are about the run, and their names on the page.
_LABELS = {
    "  when:": "When",
    "  since:": "Since when",
    "  reach:": "What it reached",
    "  state:": "What was undone",
    "  again:": "See it again",
}


def rows(
    finding: FindingFields, message: str, sample: Sample | None = None
) -> list[str]:
    """Returns the rows as a list of definitions, without those that have no answer.

    Args:
      finding: The first finding.
      message: The text of the error.
      sample: The row of the batch that failed.
    """
    answers = {
        "Where": _place(finding),
        "Why": finding.cause,
        "What to write": _fix(finding),
        "What it costs": _explain.cost_of(finding),
        "Which sample": _sample.words_of(sample) if sample else _rows(finding),
        **_of_the_run(message),
    }
    known = [(name, _text.capital(words)) for name, words in answers.items() if words]
    return listed(known) if known else []


def _place(finding: FindingFields) -> str:
    site = finding.site
    if site is None:
        is_given = finding.origin.startswith("argument ")
        return f"{finding.origin}, before any operation" if is_given else ""
    inside = f", inside `{finding.layer}`" if finding.layer else ""
    return f"`{site.place}`: `{site.source}`{inside}"


def _rows(finding: FindingFields) -> str:
    if finding.row is None:
        return ""
    is_everywhere = _explain.is_everywhere(finding)
    return f"{'every row' if is_everywhere else f'row {finding.row}'} of the batch"


def listed(facts: Iterable[tuple[str, str]]) -> list[str]:
    """Returns names and values as a list of definitions."""
    pairs = [
        f"<dt>{text(_text.capital(name))}</dt><dd>{coded(words)}</dd>"
        for name, words in facts
    ]
    return ["<dl>", *pairs, "</dl>"]


def _fix(finding: FindingFields) -> str:
    if finding.suggested_code:
        # In one line.
        return f"`{finding.suggested_code.replace(chr(10), '; ')}`"
    return finding.suggestion


def _of_the_run(message: str) -> dict[str, str]:
    found: dict[str, str] = {}
    label = ""
    for line in message.split("\n"):
        head, _, words = line.partition(": ")
        if f"{head}:" in _LABELS:
            label = _LABELS[f"{head}:"]
            found[label] = words.strip()
        elif label and line.startswith(_text.INDENT):
            found[label] += f" {line.strip()}"
        else:
            label = ""
    if not found.get("Since when"):
        found["Since when"] = _too_early(found.get("When", ""))
    return {name: found[name] for name in _LABELS.values() if name in found}


def _too_early(when: str) -> str:
    """Says that there is nothing to compare a step with."""
    step = re.match(r"step (\d+)\b", when)
    if step is None or int(step[1]) >= _FEW:
        return ""
    if step[1] == "0":
        return "this is the first step"
    return f"too early to say: only {_text.counted(int(step[1]), 'step')} before it"
