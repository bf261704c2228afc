"""Checks both archives, and dates the section of the changelog: `make release`."""

import datetime
import pathlib
import subprocess
import sys
import tarfile
import tempfile
import zipfile

from tests.running import matrix
from tfsafe import __version__

WHEEL = (
    "tfsafe/py.typed",
    "tfsafe/layers/_keras_names.pyi",
    "tfsafe/examples/rescue_lstm.py",
    "tfsafe/ops/kernels/zeros.py",
)
SDIST = ("CHANGELOG.md", "Makefile", "docs/conf.py", "tests/test_readme.py")


CHANGELOG = matrix.ROOT / "CHANGELOG.md"
_USE = "import tfsafe; tfsafe.coverage('Softmax'); print(tfsafe.__version__)"


def check_contents(folder: str) -> None:
    """Exits with an error that lists what is missing, or does not belong there.

    Args:
      folder: Where both are.
    """
    dist = pathlib.Path(folder)
    (wheel,), (sdist,) = dist.glob("*.whl"), dist.glob("*.tar.gz")
    with zipfile.ZipFile(wheel) as archive:
        in_wheel = set(archive.namelist())
    with tarfile.open(sdist) as archive:
        in_sdist = {name.partition("/")[2] for name in archive.getnames()}
    faults = [f"{wheel.name} lacks {name}" for name in WHEEL if name not in in_wheel]
    faults += [
        f"{sdist.name} lacks {name}"
        for name in (*SDIST, *WHEEL[:2])
        if name not in in_sdist
    ]
    faults += [
        f"{wheel.name} holds {name}"
        for name in in_wheel
        if not name.startswith(("tfsafe/", "tfsafe-")) or "__pycache__" in name
    ]
    if faults:
        raise SystemExit("\n".join(faults))


def check_imports(folder: str) -> None:
    """Imports the wheel from an environment that holds nothing else, in each Python."""
    (wheel,) = pathlib.Path(folder).resolve().glob("*.whl")
    for version in matrix.PYTHONS:
        interpreter = matrix.interpreter(version)
        if interpreter is None:
            print(f"Python {version} is not installed")
            continue
        with tempfile.TemporaryDirectory() as environment:
            python = f"{environment}/bin/python"
            for command in (
                [interpreter, "-m", "venv", environment],
                [python, "-m", "pip", "install", "--quiet", str(wheel)],
                [python, "-I", "-c", _USE],
            ):
                subprocess.run(command, check=True, cwd=environment)
        print(f"Python {version} imports {wheel.name}", flush=True)


def date_changelog() -> None:
    """Gives what is unreleased the version and the date, once."""
    text = CHANGELOG.read_text()
    title = f"## {__version__} - "
    if title not in text:
        dated = f"## Unreleased\n\n{title}{datetime.date.today()}\n"
        CHANGELOG.write_text(text.replace("## Unreleased\n", dated, 1))


if __name__ == "__main__":
    check_contents(sys.argv[1])
    check_imports(sys.argv[1])
    date_changelog()
