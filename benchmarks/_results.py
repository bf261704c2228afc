"""Reads and writes the file of results, part by part.

A part is the output of one benchmark; its origin are the lines that say where and when
it was measured. What most parts have in common stands at the head of the file, and a
part from elsewhere says its own.
"""

import collections
import contextlib
import dataclasses
import datetime
import importlib.metadata
import os
import pathlib
import platform
import re

_HEAD = """\
# Results of the benchmarks

Written by `make bench`. Ratios are medians over the rounds, with the other
quartiles in brackets; the peak memory is that of the whole process.
"""


@dataclasses.dataclass(frozen=True)
class Part:
    """The lines that say where one benchmark ran, and what it wrote."""

    origin: str
    body: str


def read(path):
    """Returns the parts of a file by their names; none if there is no file."""
    if not path.exists():
        return {}
    head, *texts = re.split(r"^## ", path.read_text(encoding="utf-8"), flags=re.M)
    common, _ = _split(head.partition("\n\n")[2].partition("\n\n")[2])
    parts = {}
    for text in texts:
        name, _, rest = text.partition("\n")
        origin, body = _split(rest.strip("\n"))
        parts[name] = Part(origin or common, body)
    return parts


def _split(text):
    """Returns the leading lines of a list, and what follows them."""
    found = re.match(r"(?:- .*\n?)*", text)
    return found.group().strip("\n"), text[found.end() :].strip("\n")


def write(path, parts):
    """Writes a file of parts, by their names."""
    origins = collections.Counter(part.origin for part in parts.values())
    common = origins.most_common(1)[0][0]
    blocks = [f"{_HEAD}\n{common}"]
    for name, part in parts.items():
        own = [part.origin] if part.origin != common else []
        blocks += [f"## {name}", *own, part.body]
    path.write_text("\n\n".join(blocks) + "\n", encoding="utf-8")


def origin(is_trial, packages=("tensorflow", "keras", "numpy")):
    """Returns the lines that say where, with what and when this process measures."""
    versions = ", ".join(
        f"{name} {importlib.metadata.version(name)}" for name in packages
    )
    memory = os.sysconf("SC_PAGE_SIZE") * os.sysconf("SC_PHYS_PAGES") / 2**30
    return "\n".join([
        f"- Machine: {_processor()}, {os.cpu_count()} cores, {memory:.0f} GiB",
        f"- Versions: Python {platform.python_version()}, {versions}",
        f"- Date: {datetime.date.today().isoformat()}",
        *["- A trial with few rounds: its figures mean nothing."] * is_trial,
    ])


def _processor():
    """Returns the name of the processor."""
    with contextlib.suppress(OSError):
        text = pathlib.Path("/proc/cpuinfo").read_text(encoding="utf-8")
        found = re.search(r"model name\s*: (.*)", text)
        if found:
            return found.group(1)
    return platform.processor() or platform.machine()
