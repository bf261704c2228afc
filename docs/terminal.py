"""Draws the terminal picture of the README from a real run: `make picture`."""

import io
import os
import pathlib
import pty
import re
import sys

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

ROOT = pathlib.Path(__file__).parent.parent
WIDTH = 92


def recorded(*command: str) -> str:
    """Returns what a command writes to a terminal, colours included."""
    chunks: list[bytes] = []

    def read(descriptor: int) -> bytes:
        chunks.append(os.read(descriptor, 4096))
        return chunks[-1]

    stdout = os.dup(1)
    with open(os.devnull, "wb") as null:
        os.dup2(null.fileno(), 1)
        pty.spawn([sys.executable, *command], read)
        os.dup2(stdout, 1)
    return b"".join(chunks).decode().replace("\r\n", "\n")


def main() -> None:
    """Runs the example under the checks and writes `docs/finding.svg`."""
    os.environ |= {"TF_CPP_MIN_LOG_LEVEL": "3", "COLUMNS": str(WIDTH)}
    os.chdir(ROOT)
    text = recorded("-m", "tfsafe", "run", "examples/constant_column.py")
    # TensorFlow's and absl's start-up log is not the subject.
    text = re.sub(r"^(WARNING: All log|[IWE]\d{4} ).*\n", "", text, flags=re.M)
    text = text.replace(f"{ROOT}{os.sep}", "")
    console = Console(record=True, width=WIDTH, file=io.StringIO())
    console.print(Text("$ tfsafe run examples/constant_column.py", style="bold"))
    console.print(Text.from_ansi(text.rstrip()))
    svg = console.export_svg(title="tfsafe", theme=MONOKAI)
    # Readers' own monospaced font: the page loads nothing from elsewhere.
    svg = re.sub(r"@font-face \{.*?\}\s*", "", svg, flags=re.S)
    (ROOT / "docs" / "finding.svg").write_text(svg)


if __name__ == "__main__":
    main()
