"""Runs the benchmarks in one go, and writes `benchmarks/RESULTS.md`.

Run `python -m benchmarks [--only several optimizer ...] [--quick] [--output PATH]
[--peers PYTHON]`. `--only` replaces the parts that it names, and leaves the others as
they are. PYTHON is that of an environment with torch and JAX, which `peers` needs.
Each benchmark is a process of its own, whose peak memory is measured; in it, variants
run side by side in rounds, and ratios are medians with their quartiles. A row whose
median is above its aim is marked as missed.
"""

import argparse
import os
import pathlib
import re
import shutil
import subprocess
import sys
import time

from benchmarks import _results

# The arguments of each benchmark that keep the whole below half an hour on two cores.
BENCHMARKS = {
    "several": ["--rounds", "9"],
    "checks": [
        *("--models", "MLP", "LSTM", "--ways", "loop", "fit", "--rounds", "9"),
        *("--checks", "control", "watch", "full", "TensorFlow", "--builds", "1"),
    ],
    "peers": ["--rounds", "9", "--builds", "1"],
    "optimizer": ["--rounds", "9"],
    "stabilize": ["--rounds", "9", "--builds", "1"],
    "losses": ["--rounds", "5", "--dtypes", "float32"],
    "layers": ["--rounds", "7"],
    "recurrent": ["--rounds", "7"],
    "memory": ["--steps", "5"],
    "growth": ["--blocks", "2", "8", "32"],
    "ops": ["--rounds", "5"],
}
# For a trial: few rounds, the smallest case.
QUICK = {
    "several": ["--rounds", "2", "--steps", "32"],
    "checks": [
        *("--models", "MLP", "--ways", "loop", "--rounds", "3", "--builds", "1"),
        *("--modes", "graph", "--checks", "control", "watch"),
    ],
    "peers": ["--rounds", "3", "--builds", "1", "--models", "MLP"],
    "optimizer": ["--rounds", "3", "--models", "MLP"],
    "stabilize": ["--rounds", "3", "--builds", "1"],
    "losses": ["--rounds", "3", "--cases", "sparse", "--dtypes", "float32"],
    "layers": ["--rounds", "3", "--layers", "Softmax"],
    "recurrent": ["--rounds", "3", "--steps", "20"],
    "memory": ["--steps", "3", "--variants", "plain", "watch", "--modes", "graph"],
    "growth": ["--blocks", "1", "2"],
    "ops": ["--rounds", "3", "--ops", "sigmoid"],
}
# The largest ratio wanted, by benchmark and by a pattern of the row; the first fits.
AIMS = {
    "several": [
        (r"\| control", None),
        (r"^\| 1 steps.*\| (monitor|SafeOptimizer) ", 1.08),
        (r"", 1.10),
    ],
    "checks": [
        (r"LSTM.*\| watch ", 1.03),
        (r"\| watch ", 1.05),
        (r"MLP.*XLA.*\| full ", 1.6),
        (r"LSTM.*XLA.*\| full ", 1.8),
    ],
    "optimizer": [(r"\| (replace|skip) \|", 1.05)],
    "memory": [
        (r"\| (watch|domain|replace|skip) ", 1.7),
        (r"\| full ", 2.5),
    ],
    "layers": [(r"Softmax|GroupNormalization|BatchNormalization", 1.08)],
}
# The packages in the environment of `peers`.
PEERS = ("torch", "jax", "numpy")
_RATIO = re.compile(r"\| (\d+\.\d+) \[")


def measured(name, arguments, python=sys.executable):
    """Returns the output of a benchmark, its seconds and its peak memory in MB."""
    command = [python, "-m", f"benchmarks.{name}", *arguments]
    begin = time.perf_counter()
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        lines = []
        for line in process.stdout:
            print(line, end="", flush=True)
            lines.append(line.rstrip())
        _, status, usage = os.wait4(process.pid, 0)
        process.returncode = os.waitstatus_to_exitcode(status)
    if process.returncode:
        raise SystemExit(f"`{' '.join(command[1:])}` failed.")
    unit = 1 if sys.platform == "darwin" else 1024
    return lines, time.perf_counter() - begin, usage.ru_maxrss * unit / 2**20


def peers_origin(python, is_trial):
    """Returns the lines that say where, with what and when the peers are measured."""
    program = (
        f"from benchmarks import _results; print(_results.origin({is_trial}, {PEERS}))"
    )
    return subprocess.check_output([python, "-c", program], text=True).strip()


def with_aims(name, lines):
    """Yields the lines of a table, each with its aim, and whether it is missed."""
    for number, line in enumerate(lines):
        if name not in AIMS or not line.startswith("|"):
            yield line
        elif line.startswith("|---"):
            yield f"{line}---|"
        elif number + 1 < len(lines) and lines[number + 1].startswith("|---"):
            yield f"{line} aim |"
        else:
            yield f"{line} {aim_of(name, line)} |"


def body_of(name, lines, seconds, peak):
    """Returns what the file of results says of a benchmark."""
    is_table = any(line.startswith("|") for line in lines)
    body = list(with_aims(name, lines)) if is_table else ["```text", *lines, "```"]
    return "\n".join([*body, "", f"{seconds:.0f} s; peak memory {peak:.0f} MB."])


def aim_of(name, line):
    found = _RATIO.search(line)
    aims = [aim for pattern, aim in AIMS[name] if re.search(pattern, line)]
    if not found or not aims or aims[0] is None:
        return ""
    is_missed = float(found.group(1)) > aims[0]
    return f"{aims[0]:.2f}{', **missed**' if is_missed else ''}"


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("--only", nargs="*", default=[], choices=list(BENCHMARKS))
    parser.add_argument("--quick", action="store_true")
    path = pathlib.Path(__file__).parent / "RESULTS.md"
    parser.add_argument("--output", type=pathlib.Path, default=path)
    parser.add_argument("--peers", metavar="PYTHON", default="")
    options = parser.parse_args()
    here, parts = _results.origin(options.quick), _results.read(options.output)
    for name in options.only or BENCHMARKS:
        python, origin = sys.executable, here
        if name == "peers":
            python = options.peers
            if not shutil.which(python):
                print("peers is skipped: `--peers` names no Python with torch and JAX.")
                continue
            origin = peers_origin(python, options.quick)
        arguments = (QUICK if options.quick else BENCHMARKS)[name]
        lines, seconds, peak = measured(name, arguments, python)
        parts[name] = _results.Part(origin, body_of(name, lines, seconds, peak))
        # After each, so that an interrupt keeps what there is.
        _results.write(options.output, {n: parts[n] for n in BENCHMARKS if n in parts})
    print(f"{options.output} is written.")


if __name__ == "__main__":
    main()
