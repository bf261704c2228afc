"""Gives a tfsafe package every name of its Keras namesake: the import-swap."""

import difflib
import importlib
import inspect
import re
import sys
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from tfsafe import _compat

# At import, so that a package refuses another backend before it imports Keras: a
# package's `__init__` imports this module first.
_compat.require_tensorflow_backend()


def fall_back_to_keras(
    package: str, own: Iterable[str]
) -> tuple[Callable[[str], Any], Callable[[], list[str]]]:
    """Builds the `__getattr__` and `__dir__` of a package such as `tfsafe.losses`.

    Names in `own` are tfsafe's; every other public name of the Keras module is Keras'
    own object. `__all__` of the package stays the list of tfsafe's names, so `dir()`
    and `__all__` together tell the two apart.

    Returns:
      The two module functions.
    """
    _publish(package, own)
    module = importlib.import_module(f"keras.{package.rpartition('.')[2]}")
    theirs = {name for name in dir(module) if not name.startswith("_")}
    known = sorted(theirs.union(own))

    def __getattr__(name: str) -> Any:
        if name in theirs:
            return getattr(module, name)
        similar = difflib.get_close_matches(name, known)
        hint = f" Did you mean {' or '.join(map(repr, similar))}?" if similar else ""
        raise AttributeError(
            f"module {package!r} has no attribute {name!r}, and neither has "
            f"{module.__name__!r}.{hint}"
        )

    def __dir__() -> list[str]:
        return list(known)

    return __getattr__, __dir__


def class_of(package: str, function: str) -> type | None:
    """Returns tfsafe's class for a function of Keras, or None."""
    module = importlib.import_module(f"tfsafe.{package}")
    for name in module.__all__:
        # Keras' own rule for the second names of its metrics.
        snake = re.sub(r"(?<=[a-z])(?=[A-Z])", "_", name).lower()
        if function == {"kldivergence": "kl_divergence"}.get(snake, snake):
            found = getattr(module, name)
            if isinstance(found, type):
                return found
    return None


def _publish(package: str, names: Iterable[str]) -> None:
    """Gives classes the public module that Keras writes into files, which stays."""
    for name in names:
        thing = getattr(sys.modules[package], name)
        if isinstance(thing, type) and thing.__module__.startswith(f"{package}."):
            thing.__module__ = package
        # Keras' metrics and callbacks have another use for `**kwargs`.
        if isinstance(thing, type) and (
            package in ("tfsafe.layers", "tfsafe.optimizers")
            or _has_own_initializer(thing)
        ):
            vars_of: Any = thing
            vars_of.__signature__ = _Signature()


def _has_own_initializer(kind: type) -> bool:
    first = next(each for each in kind.__mro__ if "__init__" in vars(each))
    return first.__module__.startswith("tfsafe.")


class _Signature:
    """The signature of a class, with all arguments that go through `**kwargs`.

    A descriptor, because a subclass with an `__init__` of its own has another one.
    """

    def __get__(self, instance: Any, owner: type) -> inspect.Signature:
        if instance is not None:
            raise AttributeError(
                "A call of the object has the signature of `__call__`."
            )
        found: dict[str, inspect.Parameter] = {}
        is_positional = True
        for place, function in enumerate(_initializers(owner)):
            parameters = list(inspect.signature(function).parameters.values())[1:]
            for each in parameters:
                if each.kind in (each.VAR_POSITIONAL, each.VAR_KEYWORD):
                    continue
                # The first one passes what the others need.
                if place and each.default is each.empty:
                    continue
                kind = each.kind if is_positional else each.KEYWORD_ONLY
                found.setdefault(each.name, each.replace(kind=kind))
            # What comes in by `**kwargs` alone has to be named.
            is_positional &= any(p.kind == p.VAR_POSITIONAL for p in parameters)
        fixed = getattr(getattr(owner, "cell_class", owner), "fixed", None)
        for name in () if fixed is None else ("implementation", *fixed):
            found.pop(name, None)
        return inspect.Signature(sorted(found.values(), key=lambda each: each.kind))


def _initializers(kind: Any) -> Iterator[Callable[..., Any]]:
    """Yields the `__init__` that a call reaches, as long as they pass on `**kwargs`."""
    for each in kind.__mro__:
        initializer = vars(each).get("__init__")
        if initializer is None:
            continue
        yield initializer
        kinds = [p.kind for p in inspect.signature(initializer).parameters.values()]
        if inspect.Parameter.VAR_KEYWORD not in kinds:
            return
        # The class that declares a cell passes them on to it.
        if "cell_class" in inspect.get_annotations(each):
            yield from _initializers(kind.cell_class)
            return
