"""Says which names and parts of a model tfsafe makes safe, and which are Keras'."""

import collections
import dataclasses
import difflib
import importlib
import inspect
import textwrap
from collections.abc import Callable, Sequence
from typing import Any, overload

from tfsafe import _calls, _compat, _swap
from tfsafe._report.catalogue import TRAPS

# Values that name nothing.
_VALUES = (bool, int, float, bytes, dict, list, tuple)
# In the order of the table. `ops` has no Keras namesake: Keras' own work on symbolic
# inputs too, and are not meant to be swapped.
_NAMESAKES = (
    "losses",
    "layers",
    "metrics",
    "optimizers",
    "callbacks",
    "regularizers",
)
_OTHERS = ("ops",)
_WIDTH = 88


@dataclasses.dataclass(frozen=True)
class Part:
    """One name, or one part of a model, and what tfsafe has for it.

    Attributes:
      name: The class or function, such as `"keras.layers.Softmax"`; for a string of a
        compiled model the string itself.
      status: `"safe"` for a name of Keras that is tfsafe's class, `"new"` for one that
        Keras does not have, `"plain"` for Keras' own that has a safe version,
        `"string"` for one that has a safe version and was named by a string, and
        `"other"` for everything else.
      safe: The safe version, such as `"tfsafe.layers.Softmax"`; empty without one.
      purpose: What the safe version is for, in a line.
      where: Path of the layer, or `"loss"`, `"metrics"`, `"optimizer"`.
    """

    name: str
    status: str
    safe: str = ""
    purpose: str = ""
    where: str = ""

    @property
    def traps(self) -> dict[str, str]:
        """The measured traps that the safe version fixes: what each is, by row."""
        return TRAPS.get(self.safe.removeprefix("tfsafe."), {})

    def __str__(self) -> str:
        subject = f"{self.where}: {self.name}" if self.where else self.name
        if self.status in ("plain", "string"):
            return f"{subject} -> {self.safe}: {self.purpose}"
        if self.status == "other":
            return f"{subject}: no version in tfsafe; use that of Keras"
        return f"{subject} ({self.status}): {self.purpose}"


@dataclasses.dataclass(frozen=True)
class Coverage:
    """What tfsafe has for a name, a class or the parts of a model.

    Attributes:
      summary: One line.
      parts: What was looked at, in order.
    """

    summary: str
    parts: tuple[Part, ...]

    def __str__(self) -> str:
        is_one = [str(part) for part in self.parts] == [self.summary]
        lines = [] if is_one else [self.summary]
        indent = "" if is_one else "  "
        for part in self.parts:
            if is_one or part.status != "other":
                lines += _wrapped(str(part), indent)
                # Those of the parts of a model would fill pages.
                traps = {} if part.where else part.traps
                for row, title in traps.items():
                    lines += _wrapped(f"fixes {row}: {title}", f"{indent}  ")
        return "\n".join(lines)

    __repr__ = __str__


def _wrapped(text: str, indent: str) -> list[str]:
    return textwrap.wrap(
        text, _WIDTH, initial_indent=indent, subsequent_indent=f"{indent}  "
    )


@overload
def coverage(of: None = None, *, print_fn: Callable[[str], object] = print) -> None: ...
@overload
def coverage(of: Any, *, print_fn: Callable[[str], object] = print) -> Coverage: ...
@_calls.answered()
def coverage(
    of: Any = None, *, print_fn: Callable[[str], object] = print
) -> Coverage | None:
    """Says which names tfsafe makes safe or adds, and the purpose of each.

    Without an argument it prints a table. `safe` marks a name of Keras that is
    tfsafe's class here, `new` one that Keras does not have. Every other name of such a
    package is Keras' own object, and is counted. A purpose ends with the measured traps
    that the name repairs; `COVERAGE.md` in the source says what each is, and tests show
    that it fails in Keras and holds here.

    Args:
      of: A name such as `"Softmax"` or `"losses"`, a string of `compile` such as
        `"mse"`, the row of a measured trap such as `"O42"`, a class, function or object
        of Keras or tfsafe, or a Keras model; None for the table of all names.
      print_fn: Called with each line of the table, of at most 88 characters.

    Returns:
      None for the table; else a `Coverage`, whose text has a line for each part.

    Raises:
      ValueError: If neither tfsafe nor Keras has the name.

    Examples:
      >>> import keras
      >>> import tfsafe
      >>> print(tfsafe.coverage("KLDivergence").summary)
      2 names: 2 have a safe version.
      >>> print(tfsafe.coverage(keras.layers.Dense))
      keras.layers.Dense: no version in tfsafe; use that of Keras
      >>> layers = [keras.Input((3,)), keras.layers.Dense(2), keras.layers.Softmax()]
      >>> model = keras.Sequential(layers)
      >>> model.compile(loss="mse")
      >>> print(tfsafe.coverage(model).summary)
      2 layers, 1 has a safe version; the loss "mse" is a string.
    """
    if of is not None:
        return _of(of)
    for package in (*_NAMESAKES, *_OTHERS):
        for line in _table(package):
            print_fn(line)
    count = sum(map(len, TRAPS.values()))
    print_fn(f"{count} measured traps are fixed by {len(TRAPS)} of these names.")
    return None


def _of(thing: Any) -> Coverage:
    import keras

    if isinstance(thing, str):
        parts = _named(thing)
    elif isinstance(thing, keras.Model):
        return _of_model(thing)
    elif isinstance(thing, _VALUES):
        raise ValueError(
            "`of` must be a name of tfsafe or Keras, an object or a model. Received: "
            f"{thing!r:.80}. Pass a name, such as 'Softmax', or a class."
        )
    else:
        parts = [_part(thing if callable(thing) and _is_named(thing) else type(thing))]
    if len(parts) == 1:
        return Coverage(str(parts[0]), tuple(parts))
    return Coverage(f"{len(parts)} names: {_have_one(parts)}.", tuple(parts))


def _is_named(thing: Any) -> bool:
    return isinstance(thing, type) or inspect.isfunction(thing)


def _have_one(parts: Sequence[Part]) -> str:
    """Counts the parts with a safe version, and those that are safe."""
    counts = collections.Counter(part.status for part in parts)
    plain, own = counts["plain"] + counts["string"], counts["safe"] + counts["new"]
    texts = [f"{plain} {'has' if plain == 1 else 'have'} a safe version"]
    if own:
        texts.append(f"{own} {'is' if own == 1 else 'are'} tfsafe's")
    return ", ".join(texts if plain or not own else texts[1:])


def _named(name: str) -> list[Part]:
    """Returns what a name means; several packages may have it.

    Raises:
      ValueError: If none has.
    """
    *path, last = name.removeprefix("tfsafe.").removeprefix("keras.").split(".")
    packages = (*_NAMESAKES, *_OTHERS)
    if not path and last in packages:
        module = importlib.import_module(f"tfsafe.{last}")
        return [_part(getattr(module, each)) for each in sorted(module.__all__)]
    found, known = [], set(packages)
    for package in packages if not path else [p for p in packages if [p] == path]:
        module = importlib.import_module(f"tfsafe.{package}")
        known.update(each for each in dir(module) if not each.startswith("_"))
        if last in dir(module) and not last.startswith("_"):
            found.append(_by_name(package, last, is_ours=name.startswith("tfsafe.")))
    found = found or _of_row(name) or _of_string(name)
    if not found:
        close = difflib.get_close_matches(last, sorted(known))
        hint = f" Did you mean {' or '.join(map(repr, close))}?" if close else ""
        raise ValueError(
            "`of` must be a name of tfsafe or Keras, an object or a model. Received: "
            f"{name!r}.{hint}"
        )
    return found


def _of_row(row: str) -> list[Part]:
    """Returns the part that fixes a measured trap, such as that of `"O42"`."""
    return [
        _by_name(*name.split("."), is_ours=True)
        for name, traps in TRAPS.items()
        if row.lower() in map(str.lower, traps)
    ]


def _of_string(name: str) -> list[Part]:
    """Returns what a string of `compile`, such as `"mse"`, means there."""
    found = [part for each in ("losses", "metrics") for part in _compiled(name, each)]
    return [part for part in found if part.safe]


def _part(thing: Any) -> Part:
    """Returns the part for a class or function, by its package and name."""
    for package in (*_NAMESAKES, *_OTHERS):
        ours = importlib.import_module(f"tfsafe.{package}")
        name = thing.__name__
        if name in ours.__all__ and getattr(ours, name) is thing:
            return _by_name(package, name, is_ours=True)
        if package in _NAMESAKES:
            theirs = importlib.import_module(f"keras.{package}")
            if getattr(theirs, name, None) is thing:
                return _by_name(package, name)
    return Part(f"{thing.__module__}.{thing.__name__}", "other")


def _by_name(package: str, name: str, *, is_ours: bool = False) -> Part:
    module = importlib.import_module(f"tfsafe.{package}")
    if name not in module.__all__:
        return Part(f"keras.{package}.{name}", "other")
    safe = f"tfsafe.{package}.{name}"
    is_keras = package in _NAMESAKES and hasattr(
        importlib.import_module(f"keras.{package}"), name
    )
    purpose = (inspect.getdoc(getattr(module, name)) or "").partition("\n")[0]
    if is_keras and not is_ours:
        return Part(f"keras.{package}.{name}", "plain", safe, purpose)
    return Part(safe, "safe" if is_keras else "new", safe, purpose)


def _of_model(model: Any) -> Coverage:
    layers = [
        dataclasses.replace(_part(type(layer)), where=_path(layer))
        for layer in _compat.all_layers(model)
        if not isinstance(layer, type(model)) and type(layer).__name__ != "InputLayer"
    ]
    count = f"{len(layers)} layer{'s' * (len(layers) != 1)}"
    parts, texts = list(layers), [f"{count}, {_have_one(layers)}"]
    config = model.get_compile_config() or {} if model.compiled else {}
    for where, package in (("loss", "losses"), ("metrics", "metrics")):
        found = [
            dataclasses.replace(part, where=where)
            for leaf in _leaves(config.get(where))
            for part in _compiled(leaf, package)
        ]
        parts += found
        strings = [part.name for part in found if part.status == "string"]
        plain = [part.name for part in found if part.status == "plain"]
        verb = "is a string" if len(strings) == 1 else "are strings"
        noun = where if where == "loss" else "metric" + "s" * (len(strings) != 1)
        if strings:
            texts.append(f"the {noun} {', '.join(strings)} {verb}")
        if plain:
            texts.append(f"{', '.join(plain)} has a safe version")
    return Coverage("; ".join(texts) + ".", tuple(parts))


def _path(layer: Any) -> str:
    return getattr(layer, "path", None) or layer.name


def _leaves(config: Any) -> list[Any]:
    """Lists the strings and serialized objects in an argument of `compile`."""
    if isinstance(config, dict) and "class_name" not in config:
        config = list(config.values())
    if isinstance(config, list | tuple):
        return [leaf for each in config for leaf in _leaves(each)]
    return [] if config is None else [config]


def _compiled(leaf: Any, package: str) -> list[Part]:
    if isinstance(leaf, str):
        # Which class `accuracy` and `crossentropy` are depends on the labels.
        name = {
            "acc": "CategoricalAccuracy", "accuracy": "CategoricalAccuracy",
            "ce": "CategoricalCrossentropy", "crossentropy": "CategoricalCrossentropy",
        }.get(leaf.lower())  # fmt: skip
        if name is None:
            try:
                found = importlib.import_module(f"keras.{package}").get(leaf)
            except ValueError:
                return [Part(f'"{leaf}"', "other")]
            name = (found if _is_named(found) else type(found)).__name__
            # A function ignores masks, and multiplies NaN by the weight 0.
            name = getattr(_swap.class_of(package, name), "__name__", name)
        part = _by_name(package, name)
        status = "string" if part.status == "plain" else part.status
        return [dataclasses.replace(part, name=f'"{leaf}"', status=status)]
    if not isinstance(leaf, dict):
        return []
    if leaf["class_name"] == "function":
        name, is_ours = str(leaf["config"]), False
    else:
        name, is_ours = leaf["class_name"], str(leaf["module"]).startswith("tfsafe")
    name = name.rpartition(">")[2]
    if hasattr(importlib.import_module(f"tfsafe.{package}"), name):
        return [_by_name(package, name, is_ours=is_ours)]
    return [Part(name, "other")]


def _table(package: str) -> list[str]:
    module = importlib.import_module(f"tfsafe.{package}")
    own = sorted(module.__all__)
    safe: set[str] = set()
    title = f"tfsafe.{package}: {len(own)} new"
    if package in _NAMESAKES:
        theirs = set(dir(importlib.import_module(f"keras.{package}")))
        safe = theirs.intersection(own)
        passed_on = theirs.intersection(dir(module)).difference(own)
        public = [name for name in passed_on if not name.startswith("_")]
        title = (
            f"tfsafe.{package}: {len(own) - len(safe)} new, {len(safe)} made safe, "
            f"{len(public)} are Keras' own"
        )
    column = max(map(len, own)) + 2
    rows = []
    for name in own:
        mark = "safe" if name in safe else "new"
        purpose = (inspect.getdoc(getattr(module, name)) or "").partition("\n")[0]
        fixed = " ".join(TRAPS.get(f"{package}.{name}", ()))
        rows += textwrap.wrap(
            f"{purpose} [{fixed}]" if fixed else purpose,
            _WIDTH,
            initial_indent=f"  {mark:<6}{name:<{column}}",
            subsequent_indent=" " * (8 + column),
        )
    return [title, *rows, ""]
