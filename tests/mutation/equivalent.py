"""Reads `equivalent.txt`: changes that no test can notice, each with the reason."""

import pathlib

from tests.mutation.changes import Change

Key = tuple[str, str, str]
_LIST = pathlib.Path(__file__).with_suffix(".txt")


def key(change: Change) -> Key:
    """Returns what tells a change from others while the lines above it come and go."""
    return change.path, change.text, change.words


def reasons() -> dict[Key, str]:
    """Returns the reason of each change that is listed."""
    found = {}
    for entry in filter(None, _LIST.read_text().strip().split("\n\n")):
        path, line, change, *reason = map(str.strip, entry.splitlines())
        found[path, line, change] = " ".join(reason)
    return found
