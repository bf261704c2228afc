"""A snapshot of the public names: a change of the surface shows up in review."""

import importlib
import pathlib

import tfsafe

SNAPSHOT = pathlib.Path(__file__).parent / "public_names.txt"


def public_names() -> list[str]:
    """Lists the names of the package and of its public subpackages."""
    names = [f"tfsafe.{name}" for name in tfsafe.__all__]
    for package in tfsafe.__all__:
        value = getattr(tfsafe, package)
        if getattr(value, "__package__", "") == f"tfsafe.{package}":
            module = importlib.import_module(f"tfsafe.{package}")
            names += [f"tfsafe.{package}.{name}" for name in module.__all__]
    return sorted(names)


def test_public_names_match_the_snapshot():
    expected = SNAPSHOT.read_text().split()
    assert public_names() == expected, (
        "The public surface changed. If that is meant, write it down with "
        "`python -m tests.test_public_names` and mention it in CHANGELOG.md."
    )


if __name__ == "__main__":
    SNAPSHOT.write_text("\n".join(public_names()) + "\n")
