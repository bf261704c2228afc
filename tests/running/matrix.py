"""Runs tier one on each Python, with the oldest and the newest TensorFlow.

`make test-matrix`. A Python that is not installed is listed as missing.
"""

import os
import pathlib
import re
import shutil
import subprocess
import sys

ROOT = pathlib.Path(__file__).parent.parent.parent
PYTHONS = ("3.10", "3.11", "3.12", "3.13")
TARGETS = {"test-oldest": ".venv-oldest-{}", "test": ".venv-{}"}
_VERSIONS = "import tensorflow, keras; print(tensorflow.__version__, keras.__version__)"


def main() -> int:
    rows = [("Python", "TensorFlow", "Keras", "result")]
    is_right = True
    for python in PYTHONS:
        for target, folder in TARGETS.items():
            found = interpreter(python)
            if found is None:
                rows.append((python, "", "", "this Python is missing"))
                break
            command = ["make", f"PYTHON={found}", target]
            run = subprocess.run(command, cwd=ROOT, capture_output=True, text=True)
            log = ROOT / folder.format(python) / f"{target}.log"
            log.parent.mkdir(exist_ok=True)
            log.write_text(run.stdout + run.stderr)
            is_right &= run.returncode == 0
            result = _summary(run.stdout) if run.stdout else f"failed; see {log}"
            rows.append((python, *_versions(log.parent), result))
            print(*rows[-1], flush=True)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    print()
    for row in rows:
        print("  ".join(f"{c:<{w}}" for c, w in zip(row, widths, strict=True)).rstrip())
    return int(not is_right)


def interpreter(python: str) -> str | None:
    """Returns the path of a Python of this version that runs, None if there is none.

    A Python that pyenv has installed counts, selected or not.
    """
    pyenv = pathlib.Path(os.environ.get("PYENV_ROOT", pathlib.Path.home() / ".pyenv"))
    installed = pyenv.glob(f"versions/{python}.*/bin/python{python}")
    for found in [shutil.which(f"python{python}"), *map(str, sorted(installed))]:
        if found is not None:
            run = subprocess.run([found, "--version"], capture_output=True, text=True)
            if run.stdout.startswith(f"Python {python}."):
                return found
    return None


def _versions(environment: pathlib.Path) -> tuple[str, str]:
    command = [str(environment / "bin" / "python"), "-c", _VERSIONS]
    try:
        run = subprocess.run(command, capture_output=True, text=True)
        tensorflow, keras = run.stdout.split()
    except (OSError, ValueError):
        return "?", "?"
    return tensorflow, keras


def _summary(output: str) -> str:
    """Returns the last two lines, time and memory and outcomes, as one."""
    time = re.findall(r"^Tier .*", output, re.MULTILINE)
    counts = re.findall(r"^\d+ passed.*", output, re.MULTILINE)
    return "; ".join([*counts[-1:], *time[-1:]]) or "failed before the tests"


if __name__ == "__main__":
    sys.exit(main())
