"""Replaces an attribute of a class or of an object, and restores it in any order."""

import functools
import threading
from collections.abc import Callable
from typing import Any

Function = Callable[..., Any]

_ABSENT: Any = object()
_LAYER = "_tfsafe_layer"
_LOCK = threading.RLock()


class Patch:
    """Wraps a method of a class, or of one object, until it is removed.

    Several patches, and wrappers of other packages, may be installed on the same
    attribute and removed in any order. A wrapper that was put around ours later stays;
    ours then only passes calls on. An attribute that the owner had inherited is
    inherited again.

    Args:
      owner: Class or object.
      name: Name of the attribute.
      make_wrapper: Called with the attribute as it was (for an object: bound), returns
        what to call in its place.

    Attributes:
      wrapper: What `make_wrapper` returned; None unless installed.
    """

    def __init__(self, owner: Any, name: str, make_wrapper: Callable[[Any], Function]):
        self._owner = owner
        self._name = name
        self._make_wrapper = make_wrapper
        self._layer: _Layer | None = None

    @property
    def wrapper(self) -> Function | None:
        """The function called in place of the attribute; None unless installed."""
        layer = self._layer
        return None if layer is None else layer.wrapper

    def install(self) -> None:
        """Wraps the attribute; does nothing if it is wrapped by this patch."""
        with _LOCK:
            if self._layer is not None:
                return
            _restore_removed(self._owner, self._name)
            original = getattr(self._owner, self._name)
            before = vars(self._owner).get(self._name, _ABSENT)
            self._layer = _Layer(self, original, before, self._make_wrapper(original))
            _set(self._owner, self._name, self._layer.function)

    def remove(self) -> None:
        """Restores the attribute; does nothing if the patch is not installed."""
        with _LOCK:
            if self._layer is not None:
                self._layer.wrapper = None
                self._layer = None
                _restore_removed(self._owner, self._name)


def patches_on(owner: Any, name: str) -> list[Patch]:
    """Returns the installed patches of an attribute, the outermost first.

    Those below a foreign wrapper are found if it was made with `functools.wraps`.
    """
    found = []
    function = vars(owner).get(name)
    while function is not None:
        layer = _layer_of(function)
        if layer is not None and layer.wrapper is not None:
            found.append(layer.patch)
        function = getattr(function, "__wrapped__", None)
    return found


class _Layer:
    """One installation of a patch.

    Attributes:
      patch: The patch.
      before: What the owner's own namespace held, or `_ABSENT`.
      wrapper: What is called; None once the patch is removed.
      function: What is set as the attribute. A foreign wrapper may go on calling it
        after the removal.
    """

    def __init__(self, patch: Patch, original: Any, before: Any, wrapper: Function):
        self.patch = patch
        self.before = before
        self.wrapper: Function | None = wrapper

        @functools.wraps(original)
        def function(*args: Any, **kwargs: Any) -> Any:
            return (self.wrapper or original)(*args, **kwargs)

        self.function = function
        setattr(function, _LAYER, self)


def _layer_of(function: Any) -> _Layer | None:
    # `functools.wraps` copies the attributes of ours to foreign wrappers.
    layer = getattr(function, _LAYER, None)
    return layer if layer is not None and layer.function is function else None


def _restore_removed(owner: Any, name: str) -> None:
    """Removes the layers of removed patches, as far as they are outermost."""
    layer = _layer_of(vars(owner).get(name))
    while layer is not None and layer.wrapper is None:
        _set(owner, name, layer.before)
        layer = _layer_of(vars(owner).get(name))


def _set(owner: Any, name: str, value: Any) -> None:
    if not isinstance(owner, type):
        # Bypass `__setattr__`, by which Keras tracks the contents of a layer.
        own: dict[str, Any] = vars(owner)
        if value is _ABSENT:
            del own[name]
        else:
            own[name] = value
    elif value is _ABSENT:
        delattr(owner, name)
    else:
        setattr(owner, name, value)
