"""Writes the two files that are made from the catalogue: `python -m tests.catalogue`.

`COVERAGE.md` is the table for readers; `tfsafe.coverage()` counts the rows in
`tfsafe/_report/catalogue.py`.
"""

import json
import pathlib
import textwrap

from tests.catalogue import every_row
from tests.catalogue.exceptions import EXCEPTIONS

ROOT = pathlib.Path(__file__).parent.parent.parent
_AREAS = {
    "O": "Operations",
    "S": "Operations, accuracy over the whole range",
    "L": "Losses",
    "Y": "Layers",
    "M": "Metrics",
    "T": "Training",
}
_HEAD = """\
# Measured traps, and what fixes each

Each row is a test, named by its identifier, in `tests/test_traps.py`: TensorFlow's or
Keras' form fails there, today, and tfsafe's is right, in every mode that the row
names. `python -m tests.catalogue` writes this page from the tests.
"""


def page() -> str:
    """Returns the text of `COVERAGE.md`."""
    parts = [_HEAD]
    for letter, title in _AREAS.items():
        rows = [row for row in every_row() if row.id.startswith(letter)]
        parts.append(f"## {title}: {len(rows)}\n\n| row | trap | fixed by |")
        parts.append("|---|---|---|")
        parts += [
            f"| {row.id} | {_escaped(row.trap)} | `{row.fixed_by}` |"
            for row in sorted(rows, key=place)
        ]
        parts.append("")
    parts.append(
        "## Not fixed\n\nTraps that no library at this level can fix, and why.\n\n"
        "| row | trap | reason |\n|---|---|---|"
    )
    parts += [
        f"| {each} | {_escaped(trap)} | {reason} |"
        for each, (trap, reason) in EXCEPTIONS.items()
    ]
    return "\n".join(parts) + "\n"


def module() -> str:
    """Returns the text of `tfsafe/_report/catalogue.py`."""
    traps: dict[str, list[str]] = {}
    for row in sorted(every_row(), key=place):
        traps.setdefault(row.fixed_by, []).append(_entry(row))
    lines = [
        '"""Measured traps, by the name that fixes them; made by `python -m '
        'tests.catalogue`."""\n',
        "TRAPS = {",
    ]
    for name in sorted(traps):
        lines += [f'    "{name}": {{', *traps[name], "    },"]
    return "\n".join([*lines, "}"]) + "\n"


def _entry(row) -> str:
    """Returns the item of a row, in lines of at most 88 characters."""
    line = f"        {_quoted(row.id)}: {_quoted(row.trap)},"
    if len(line) <= 88:
        return line
    first, *rest = textwrap.wrap(row.trap, 73)
    parts = [f"            {_quoted(t)}" for t in (first, *(f" {r}" for r in rest))]
    return "\n".join([f"        {_quoted(row.id)}: (", *parts, "        ),"])


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)


def place(row) -> tuple:
    """Sorts rows by their letter and number."""
    digits = "".join(filter(str.isdigit, row.id[1:4]))
    return row.id[0], int(digits or 0), row.id


def _escaped(text: str) -> str:
    return text.replace("|", "\\|").replace("*", "\\*")


if __name__ == "__main__":
    (ROOT / "COVERAGE.md").write_text(page())
    (ROOT / "tfsafe" / "_report" / "catalogue.py").write_text(module())
