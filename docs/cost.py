"""Writes what was measured into the README, the guide and the table of findings.

Run `python docs/cost.py` after `make bench` has written `benchmarks/RESULTS.md`.
"""

import pathlib
import re
import sys
from collections.abc import Iterator

ROOT = pathlib.Path(__file__).parent.parent
sys.path.insert(0, str(ROOT))

from benchmarks import _results  # noqa: E402

TABLE = ROOT / "tfsafe" / "_report" / "costs.py"
README, GUIDE = ROOT / "README.md", ROOT / "docs" / "guides" / "cost.md"
# What the figures of each file look like.
_BLOCKS = {
    README: re.compile(r"\*watch\* [\d.]+ to .*?\.\n", re.S),
    GUIDE: re.compile(r"^\| step \|.*?\n(?=\n)", re.M | re.S),
}
_ROW = re.compile(r"^\| (\w+), (\w+), (\w+) \| (\w+) \| [\d.]+ \| ([\d.]+) \[", re.M)


def blocks() -> dict[pathlib.Path, str]:
    """Returns the block of each file; none if the checks ran as a trial or not."""
    part = _results.read(ROOT / "benchmarks" / "RESULTS.md").get("checks")
    ratios = {row[:4]: float(row[4]) for row in _ROW.findall(part.body if part else "")}
    if not ratios or "A trial" in part.origin:
        return {}
    return {README: _sentence(ratios), GUIDE: "\n".join(_table(ratios))}


def _sentence(ratios: dict[tuple[str, ...], float]) -> str:
    def span(level: str, *modes: str) -> str:
        those = [
            ratio
            for (*_, mode, found), ratio in ratios.items()
            if found == level and mode in modes
        ]
        return f"{min(those):.2f} to {max(those):.2f}"

    return (
        f"*watch* {span('watch', 'graph', 'XLA')}, *full* {span('full', 'graph')} "
        f"(XLA: {span('full', 'XLA')}), TensorFlow's {span('TensorFlow', 'graph')}."
    )


def _table(ratios: dict[tuple[str, ...], float]) -> Iterator[str]:
    yield "| step | *watch* | *full* | TensorFlow's own checker |"
    yield "|---|---|---|---|"
    for step in dict.fromkeys(key[:3] for key in ratios):
        cells = [ratios.get((*step, x)) for x in ("watch", "full", "TensorFlow")]
        shown = ["-" if each is None else f"{each:.2f}" for each in cells]
        yield f"| {', '.join(step)} | {' | '.join(shown)} |"


# Of the ops, the time over the plain function; of the optimizer, that of a step.
_OF_OP = re.compile(r"^\| (\w+)(?:, [^|]*)? \|[^|]*\|[^|]*\|[^|]*\| ([\d.]+) \[", re.M)
_OF_STEP = re.compile(r"^\|[^|]*\|[^|]*\| replace \| ([\d.]+) \[", re.M)


def module() -> str:
    """Returns the text of `tfsafe/_report/costs.py`."""
    parts = _results.read(ROOT / "benchmarks" / "RESULTS.md")
    ratios: dict[str, list[float]] = {}
    for name, ratio in _OF_OP.findall(parts["ops"].body):
        if name != "control":
            ratios.setdefault(f"ops.{name}", []).append(float(ratio))
    steps = map(float, _OF_STEP.findall(parts["optimizer"].body))
    ratios["optimizers.SafeOptimizer"] = list(steps)
    lines = [
        '"""Measured ratios of times, by name; made by `python docs/cost.py`."""\n',
        "# Smallest and largest of the medians; of an optimizer, of the whole step.",
        "COSTS = {",
        *(f'    "{name}": ({min(r)}, {max(r)}),' for name, r in sorted(ratios.items())),
        "}",
    ]
    return "\n".join(lines) + "\n"


def main() -> None:
    """Writes the blocks and the table."""
    TABLE.write_text(module(), "utf-8")
    for path, block in blocks().items():
        text = path.read_text(encoding="utf-8")
        path.write_text(_BLOCKS[path].sub(f"{block}\n", text, count=1), "utf-8")


if __name__ == "__main__":
    main()
