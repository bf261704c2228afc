"""Finds the Keras layer of an operation, by the names that `model.get_layer` knows.

A traced function has only name scopes: Keras opens the scope of a layer twice, so that
layer `rownorm` is `rownorm_1` there, and TensorFlow counts on with each further call.
The layers that are alive tell which part of a scope is a name, and which a count.
"""

import contextlib
import contextvars
import gc
import itertools
import re
import threading
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any

import keras

from tfsafe._report.explain import LOSSES

_COLLECTOR = threading.Lock()
_KINDS = keras.Layer, keras.Metric, keras.optimizers.Optimizer
# What one walk found, within `walked_once`; empty before the walk.
_FOUND: contextvars.ContextVar[list[Any] | None] = contextvars.ContextVar(
    "found", default=None
)
# Layers of a capsule: the names of their classes, by name.
_REMEMBERED: dict[str, str] = {}


_NO_EPSILON = (
    "give the layer an epsilon, such as {}(epsilon=1e-3), its default: without one, a "
    "moving variance of 0 is divided by."
)


class Layers:
    """The layers that are alive, by name."""

    def __init__(self) -> None:
        self._by_name: dict[str, set[type]] = defaultdict(set)
        for each in alive(keras.Layer):
            if hasattr(each, "name"):
                self._by_name[each.name].add(type(each))
        for name, kind in _REMEMBERED.items():
            self._by_name[name] = {getattr(keras.layers, kind, keras.Layer)}

    def path_of(self, scope: str, is_exact: bool) -> str:
        """Returns the path of layers in a name scope, such as `pricing/rownorm`.

        Args:
          scope: Name scope of an operation.
          is_exact: Whether the scope has the layers' own names, as in eager mode.

        Returns:
          The path; empty where no part of the scope is a layer.
        """
        return "/".join(self._parts(scope, is_exact))

    def class_of(self, scope: str, is_exact: bool) -> type | None:
        """Returns the class of the innermost layer of a scope, if it is known."""
        parts = self._parts(scope, is_exact)
        found = self._by_name[parts[-1]] if parts else set()
        return next(iter(found)) if len(found) == 1 else None

    def names_in(self, scopes: Iterable[str]) -> dict[str, str]:
        """Returns the layers of name scopes: the names of their classes, by name.

        A class that is not Keras' own has the name `Layer`.
        """
        found = {part for each in scopes for part in self._parts(each, is_exact=False)}
        names = {}
        for name in sorted(found):
            classes = self._by_name[name]
            kind = next(iter(classes)).__name__ if len(classes) == 1 else ""
            is_keras = classes == {getattr(keras.layers, kind, None)}
            names[name] = kind if is_keras else "Layer"
        return names

    def _parts(self, scope: str, is_exact: bool) -> Sequence[str]:
        names = scope.split("/") if scope else []
        return [known for each in names if (known := self._known(each, is_exact))]

    def _known(self, name: str, is_exact: bool) -> str:
        if not is_exact:
            plain = re.sub(r"_\d+$", "", name)
            if plain in self._by_name:
                return plain
        return name if name in self._by_name else ""


@contextlib.contextmanager
def remembered(names: Mapping[str, str]) -> Iterator[None]:
    """Makes the layers of a capsule known, as if they were alive.

    Args:
      names: What `Layers.names_in` returned.
    """
    _REMEMBERED.update(names)
    try:
        yield
    finally:
        _REMEMBERED.clear()


@contextlib.contextmanager
def walked_once() -> Iterator[None]:
    """Has all calls of `alive` use one walk through the objects of Python.

    A large program has millions of objects, and a finding asks several times.
    """
    token = _FOUND.set(_FOUND.get() or [])
    try:
        yield
    finally:
        _FOUND.reset(token)


def alive(base: type) -> list[Any]:
    """Returns the instances of a class and its subclasses that are alive.

    Args:
      base: A layer, metric or optimizer of Keras, or a class of these.

    Returns:
      The instances.
    """
    found = _FOUND.get()
    if found is None:
        return _instances([base])
    if not found:
        found += _instances(_KINDS)
    return [each for each in found if base in type(each).__mro__]


def _instances(bases: Iterable[type]) -> list[Any]:
    """Walks through all objects for the instances of some classes."""
    # A list of all objects holds what other threads have half built, and Python refuses
    # to complete their tuples while it is there. So the list is made and searched
    # within one call that runs no Python code, in which no other thread has its turn.
    # Not `gc.get_referrers`: objects of some libraries crash it.
    classes = set().union(*map(_subclasses, bases))
    # By `id` and `type`: comparing some classes, and asking some objects for their
    # `__class__`, runs code.
    known = {id(each) for each in classes}
    # Nothing of this is called before the end. What `tee` keeps of the list is None.
    padding = itertools.repeat(None, 200)
    listed = map(itertools.chain, map(gc.get_objects, [None]), [padding])
    both = itertools.chain.from_iterable(map(itertools.tee, listed))
    objects, again = (
        itertools.chain.from_iterable(itertools.islice(both, 1)) for _ in range(2)
    )
    is_meant = map(known.__contains__, map(id, map(type, again)))
    with _no_collection():
        return list(itertools.compress(objects, is_meant))


@contextlib.contextmanager
def _no_collection() -> Iterator[None]:
    """Keeps the garbage collector from running, which runs Python code."""
    with _COLLECTOR:
        was_enabled = gc.isenabled()
        gc.disable()
        try:
            yield
        finally:
            if was_enabled:
                gc.enable()


def _subclasses(base: type) -> set[type]:
    return {base}.union(*map(_subclasses, base.__subclasses__()))


def swap_of(layer: type | None, scope: str) -> tuple[str, str]:
    """Returns the import that replaces a class of Keras by its safe namesake.

    Returns:
      The code, empty without a namesake that repairs it, and what it does, or what to
      change; empty for nothing.
    """
    from tfsafe import layers, losses

    if layer is not None:
        is_keras = layer.__module__.startswith("keras.")
        name = layer.__name__
        parts = scope.split("/")
        # A count may be part of the name.
        names = {*parts, *(re.sub(r"_\d+$", "", each) for each in parts)}
        meant = [each for each in alive(layer) if getattr(each, "name", "") in names]
        if meant and all(map(_divides_by_moving_zero, meant)):
            return "", _NO_EPSILON.format(name)
        if not is_keras or getattr(layers, name, layer) is layer:
            return "", ""
        return "from tfsafe import layers", (
            f"layers.{name} replaces keras.layers.{name}, with the same arguments and "
            "weights."
        )
    name = _loss_class(scope)
    if not name or getattr(losses, name, None) is getattr(keras.losses, name):
        return "", ""
    return "from tfsafe import losses", (
        f"compile(loss=losses.{name}()) replaces keras.losses.{name}, with the same "
        "arguments."
    )


def _divides_by_moving_zero(layer: Any) -> bool:
    """Returns whether a layer has a moving variance of 0, and an epsilon of 0."""
    variance = getattr(layer, "moving_variance", None)
    if variance is None or getattr(layer, "epsilon", 1.0) != 0:
        return False
    return bool((keras.ops.convert_to_numpy(variance) == 0).any())


def _loss_class(scope: str) -> str:
    """Returns the name of the class of a loss of Keras, from the scope of `compile`."""
    parts = scope.split("/")
    if parts[0] != LOSSES or len(parts) < 2:
        return ""
    try:
        found = keras.losses.get(re.sub(r"_\d+$", "", parts[1]))
    except ValueError:
        return ""
    name = getattr(found, "__name__", "")
    wanted = name.replace("_", "").lower()
    return next((each for each in dir(keras.losses) if each.lower() == wanted), "")
