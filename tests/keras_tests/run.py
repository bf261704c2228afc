"""Runs Keras' own tests with the classes of tfsafe, and compares with Keras' own.

    python -m tests.keras_tests.run              the files of `files.txt`
    python -m tests.keras_tests.run --all        all test files of the wheel
    python -m tests.keras_tests.run layers/rnn/  these files or folders

Fails if a test passes with Keras' classes and fails with ours, unless
`differences.txt` lists it, and if a listed one passes. Only what fails with ours is
run with Keras' classes. A few files share a process, so that memory stays low; what
differs in them is printed when they are done.
"""

import argparse
import concurrent.futures
import fnmatch
import importlib.util
import json
import os
import pathlib
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence

HERE = pathlib.Path(__file__).parent
# Without importing Keras, which would take memory beside the tests.
_spec = importlib.util.find_spec("keras")
assert _spec is not None
assert _spec.origin is not None
KERAS = pathlib.Path(_spec.origin).parent / "src"
# Tests of other backends, which cannot be imported without them.
OTHER_BACKENDS = ("backend/jax/", "backend/torch/")
Outcomes = dict[str, tuple[str, str]]


def chosen_files(names: Sequence[str], everything: bool) -> list[str]:
    """Returns the paths of test files below `keras/src`."""
    known = sorted(str(p.relative_to(KERAS)) for p in KERAS.rglob("*_test.py"))
    known = [name for name in known if not name.startswith(OTHER_BACKENDS)]
    if everything:
        return known
    wanted = tuple(names or (HERE / "files.txt").read_text().split())
    return [name for name in known if name.startswith(wanted)]


def differences() -> dict[str, str]:
    """Returns the patterns of tests that are meant to differ, with their reasons."""
    lines = (HERE / "differences.txt").read_text().splitlines()
    rows = [line.partition("  ") for line in lines if not line.startswith("#")]
    return {pattern: reason.strip() for pattern, _, reason in rows if pattern}


def outcomes(tests: Sequence[str], swap: str) -> Outcomes:
    """Runs test files or single tests in one process."""
    with tempfile.TemporaryDirectory() as folder:
        log = pathlib.Path(folder) / "outcomes"
        log.touch()
        root = str(HERE.parent.parent)
        environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([root, os.environ.get("PYTHONPATH", "")]),
            "TFSAFE_SWAP": swap,
            "TFSAFE_OUTCOMES": str(log),
            "TF_CPP_MIN_LOG_LEVEL": "3",
            # oneDNN's bfloat16 kernels crash on some virtual machines, with Keras'
            # own classes too.
            "TF_ENABLE_ONEDNN_OPTS": "0",
        }
        options = ["-q", "-p", "tests.keras_tests.swap", "-p", "no:cacheprovider"]
        options += ["-p", "no:warnings", "-c", os.devnull]
        # Pytest's own tracebacks take half a second each for so long a test file.
        options += ["--tb=native"]
        # A file that cannot be collected must not end the others of its process.
        options += ["--continue-on-collection-errors"]
        options += ["--rootdir", str(KERAS.parent.parent)]
        options += ["--pyargs", *map(_module, tests)]
        # Not in the checkout, whose pytest settings are not Keras'.
        finished = subprocess.run(
            [sys.executable, "-m", "pytest", *options],
            cwd=folder,
            env=environment,
            capture_output=True,
            text=True,
        )
        records = [json.loads(line) for line in log.read_text().splitlines()]
    if not records:
        raise RuntimeError(finished.stdout[-2000:] + finished.stderr[-2000:])
    return {r["test"]: (r["outcome"], r.get("message", "")) for r in records}


def _module(test: str) -> str:
    """Returns the name by which `pytest --pyargs` knows a file or a test."""
    file, colons, name = test.partition("::")
    return f"keras.src.{file.removesuffix('.py').replace('/', '.')}{colons}{name}"


def _needs_more(message: str) -> bool:
    """Returns whether a test fails without JAX or a network, with any classes."""
    return message.startswith((
        "AttributeError: module 'jax' has no attribute",
        "ModuleNotFoundError: No module named 'jax'",
        "Exception: URL fetch failure on ",
    ))


def all_outcomes(
    files: Sequence[str], swap: str, size: int
) -> Iterator[tuple[int, Outcomes, list[str]]]:
    """Runs files in two processes at a time.

    Yields:
      How many were run, their outcomes, and the tests that fail with ours alone.
    """
    # Long files take long: each batch has its share of them.
    ranked = sorted(files, key=lambda name: -(KERAS / name).stat().st_size)
    count = -(-len(ranked) // size)
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        batches = [ranked[start::count] for start in range(count)]
        parts = {pool.submit(_of_batch, batch, swap): batch for batch in batches}
        for part in concurrent.futures.as_completed(parts):
            yield len(parts[part]), *part.result()


def _of_batch(files: Sequence[str], swap: str) -> tuple[Outcomes, list[str]]:
    """Runs files in one process, and each again alone after a crash."""
    found = outcomes(files, swap)
    if any(outcome == "crashed" for outcome, _ in found.values()):
        found = {}
        for file in files:
            found |= outcomes([file], swap)
    return found, _failing_with_ours_alone(found)


def _failing_with_ours_alone(found: Outcomes) -> list[str]:
    """Returns the tests that fail with our classes and pass with Keras' own."""
    suspects = [
        test
        for test, (what, message) in found.items()
        if what in ("failed", "crashed") and not _needs_more(message)
    ]
    plain = outcomes(suspects, "") if suspects else {}
    return [test for test in suspects if plain.get(test, ("",))[0] == "passed"]


def main(arguments: Sequence[str] | None = None) -> int:
    """Runs the comparison, prints what differs, and returns the exit code."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("files", nargs="*")
    parser.add_argument("--all", action="store_true")
    parser.add_argument("--swap", default="classes,optimizers")
    parser.add_argument("--batch", type=int, default=8)
    options = parser.parse_args(arguments)
    files = chosen_files(options.files, options.all)
    meant, used = differences(), set()
    done = passed = failed = 0
    for count, found, differing in all_outcomes(files, options.swap, options.batch):
        done += count
        passed += sum(what == "passed" for what, _ in found.values())
        for test in differing:
            patterns = [p for p in meant if fnmatch.fnmatchcase(test, p)]
            used.update(patterns)
            if not patterns:
                failed += 1
                what, message = found[test]
                print(f"{test}: {message or what}", flush=True)
        print(f"{done} of {len(files)} files", flush=True)
    stale = [
        pattern
        for pattern in meant
        if pattern not in used and pattern.partition("::")[0] in files
    ]
    print(*(f"passes by now, remove it: {p}" for p in stale), sep="\n")
    print(f"{passed} passed with tfsafe, {failed} failed, {len(used)} meant to differ")
    return 1 if failed or stale else 0


if __name__ == "__main__":
    sys.exit(main())
