"""Checks of the project itself: private names, formulas, words, the lazy import.

The allow-list below only ever gets smaller: a repaired place is removed.
"""

import ast
import collections
import pathlib
import re
import subprocess
import sys

import pytest

ROOT = pathlib.Path(__file__).parent.parent
SOURCES = {
    str(path.relative_to(ROOT)): path.read_text()
    for path in sorted((ROOT / "tfsafe").rglob("*.py"))
}
TREES = {path: ast.parse(text) for path, text in SOURCES.items()}
PRIVATE = re.compile(r"tensorflow\.python|keras\.src|__internal__")
# Formulas belong to `ops` and `keras_formulas`; what these packages still have of their
# own, by folder: how many calls of `FORMULA`. Logic of masks is not arithmetic.
FORMULA = re.compile(
    r"tf\.(math\.|linalg\.)?"
    r"(exp|expm1|log|log1p|sqrt|rsqrt|pow|softmax|norm|reduce_(?!any|all)\w+)"
)
FORMULAS: dict[str, int] = {
    "tfsafe/layers/core": 1,
    "tfsafe/rewriting/rules/differences": 1,
}
# How NumPy compares, by relative and absolute tolerances.
TOLERANCE = re.compile(r"\b([ra]tol|(assert_)?(all|is)close\()")
# Words that readers would have to decode. What to write instead: a non-finite value, a
# counterpart or copy, a fraction, a suggested fix, suggested code, "reports" and
# "returns", "recompute", "restored", "skipped".
WORDS = (
    "bad",
    "twin",
    "share",
    "cure",
    "paste",
    "tells",
    "told",
    "hands out",
    "hands over",
    "hands on",
    "handed",
    "stands",
    "anew",
    "surprise",
    "put back",
    "left out",
    "beside",
    "likewise",
    "nobody",
    "somebody",
    "mends?",
    "mended",
    "poison",
    "verdict",
    "judges?",
    "silent",
    "as it is",
    "of which",
    "where None",
    "(is|are) no",
    "whoever",
    "run again",
)


def test_private_names_are_in_the_compat_package_alone():
    private = [
        path
        for path, text in SOURCES.items()
        if PRIVATE.search(text) and not path.startswith("tfsafe/_compat/")
    ]
    assert not private


def test_files_stay_readable_in_one_sitting():
    # The table of traps is written by `python -m tests.catalogue`.
    written = SOURCES.keys() - {"tfsafe/_report/catalogue.py"}
    lengths = {path: len(SOURCES[path].splitlines()) for path in written}
    long = {path: length for path, length in lengths.items() if length > 400}
    assert not long, "split them by topic"


def test_no_package_imports_an_underscore_name_of_another():
    assert not _private_imports()


def _private_imports() -> set[tuple[str, str]]:
    found = set()
    for path, tree in TREES.items():
        own = path.split("/")[1].removesuffix(".py")
        for name in _imported(tree):
            package, *rest = name.split(".")[1:] or [""]
            is_private = any(re.match(r"_[^_]", part) for part in rest)
            if package != own and is_private and not package.startswith("_"):
                found.add((own, name))
    return found


def _imported(tree: ast.Module) -> list[str]:
    """Returns the dotted names in `tfsafe` that a module imports."""
    names = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            names += [alias.name for alias in node.names]
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            names += [f"{node.module}.{alias.name}" for alias in node.names]
    return [name for name in names if name.startswith("tfsafe.")]


def test_each_public_package_imports_what_exempts_it_from_autograph():
    public = {path.split("/")[1] for path in TREES if path.count("/") == 2}
    doors = {name for name in public if not name.startswith("_")}
    assert doors >= {"ops", "losses", "layers", "optimizers", "debugging", "rewriting"}
    # Keras' formulas and graphs have no door of their own.
    found = {name for name in doors if "tfsafe._args" in _loaded_with(f"tfsafe.{name}")}
    assert doors - found == {"graph", "keras_formulas"} - found


def _loaded_with(module: str) -> set[str]:
    """Returns the modules of tfsafe that the import of one of them loads."""
    paths = {
        re.sub(r"(/__init__)?\.py$", "", path).replace("/", "."): path for path in TREES
    }
    found, queue = set(), [module]
    while queue:
        name = queue.pop()
        name = name if name in paths else name.rpartition(".")[0]
        if name in paths and name not in found:
            found.add(name)
            queue += _imported(TREES[paths[name]])
    return found


def test_formulas_are_in_ops_and_keras_formulas():
    found = _formulas()
    grown = {
        folder: f"{count}, were {FORMULAS.get(folder, 0)}"
        for folder, count in found.items()
        if count > FORMULAS.get(folder, 0)
    }
    assert not grown, "arithmetic belongs in a kernel of `tfsafe.ops`"


def _formulas() -> collections.Counter:
    found: collections.Counter = collections.Counter()
    for path, tree in TREES.items():
        folder = path.rpartition("/")[0]
        if folder.startswith(("tfsafe/rewriting/rules", "tfsafe/layers")) or (
            folder == "tfsafe/metrics"
        ):
            calls = [node for node in ast.walk(tree) if isinstance(node, ast.Call)]
            found[folder] += sum(
                FORMULA.fullmatch(ast.unparse(call.func)) is not None for call in calls
            )
    return +found


def test_tolerances_are_in_ulps():
    found = {
        str(path.relative_to(ROOT))
        for path in (ROOT / "tests").rglob("*.py")
        if TOLERANCE.search(path.read_text())
    }
    assert not found, "compare with `oracle.assert_close`"


@pytest.mark.parametrize("word", WORDS)
def test_there_are_no_words_that_have_to_be_decoded(word):
    pattern = re.compile(rf"\b{word}\b", re.IGNORECASE)
    assert not [path for path, text in SOURCES.items() if pattern.search(text)]


def test_each_folder_says_what_it_is_for():
    assert not _undescribed(), "its contents, its imports, one example"


def _undescribed() -> set[str]:
    return {
        path
        for path, tree in TREES.items()
        if path.endswith("/__init__.py")
        and path.count("/") > 2
        and len((ast.get_docstring(tree) or "").splitlines()) < 5
    }


def test_importing_tfsafe_loads_neither_tensorflow_nor_keras_nor_numpy():
    program = (
        "import sys, tfsafe; assert tfsafe.__version__; tfsafe.NumericsError('x'); "
        "print({'tensorflow', 'keras', 'numpy'} & set(sys.modules))"
    )
    result = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=True
    )
    assert result.stdout.strip() == "set()"


def test_an_unknown_name_is_refused_by_name():
    import tfsafe

    with pytest.raises(AttributeError, match="'tfsafe' has no attribute 'safe_loss'"):
        _ = tfsafe.safe_loss
    assert "NumericsError" in dir(tfsafe)


def test_pinned_tool_versions_are_the_same_everywhere():
    pinned = dict(
        re.findall(r"^ +([\w-]+) == ([\d.]+)(?:;.*)?$", _read("setup.cfg"), re.M)
    )
    assert set(pinned) == {"ruff", "mypy", "import-linter"}
    hooks = set(re.findall(r"([\w-]+)==([\d.]+)", _read(".pre-commit-config.yaml")))
    assert hooks == set(pinned.items())


def test_the_oldest_versions_tested_are_those_promised():
    bounds = dict(re.findall(r"(tensorflow|keras) >= ([\d.]+)", _read("setup.cfg")))
    pinned = re.findall(
        r"^(\w+)==([\d.]+); python_version <", _read("tests/oldest.txt"), re.M
    )
    tested = dict(pinned)
    assert {name: tested[name].rpartition(".")[0] for name in tested} == bounds


def _read(name: str) -> str:
    return (ROOT / name).read_text()
