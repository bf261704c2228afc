"""Checks what the source archive and the wheel hold: `make release`."""

import pathlib
import sys
import tarfile
import zipfile

WHEEL = (
    "tfsafe/py.typed",
    "tfsafe/layers/_keras_names.pyi",
    "tfsafe/examples/rescue_lstm.py",
    "tfsafe/ops/kernels/zeros.py",
)
SDIST = ("CHANGELOG.md", "Makefile", "docs/conf.py", "tests/test_readme.py")


def main(folder: str) -> None:
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


if __name__ == "__main__":
    main(sys.argv[1])
