"""Knows where eager code made the values that a function is called with."""

import copy
import sys
import threading
import weakref
from typing import Any

from tfsafe.debugging import values
from tfsafe.debugging.tracing.origins import Origin, Origins
from tfsafe.debugging.tracing.provenance import Propagation

_LOCAL = threading.local()
# What a replay sees of them has no place: a call that could not be looked into.
_OPAQUE = "StatefulPartitionedCall"


def remember(propagation: Propagation) -> None:
    """Has calls of this thread look up what its eager code has followed."""
    _LOCAL.followed = weakref.ref(propagation)


def forget(propagation: Propagation) -> None:
    """Has calls of this thread no longer look that up."""
    if followed() is propagation:
        del _LOCAL.followed


def followed() -> Propagation | None:
    """Returns what has followed the eager code of this thread, if anything does."""
    found: Propagation | None = getattr(_LOCAL, "followed", lambda: None)()
    return found


class AfterEager(Propagation):
    """Follows a call, from where eager code made its arguments and state."""

    def outside(self, value: Any, holder: str, key: Any = None) -> Origin:
        """Notes a value from outside, of a variable where eager code computed it."""
        before = followed()
        if before is not None and values.is_same(value, before.value(key)):
            made = self._first(before.origins(key))
            if made is not None:
                self.all.append(made)
                self.mark(key, [made], value=value)
                return made
        return super().outside(value, holder, key)

    def _new(self, value: Any, **what: Any) -> Origin:
        step = what.get("step")
        is_constant = step is not None and step.type == "Const"
        if step is None or is_constant:
            # An infinity without a name may be that of a mask.
            is_meant = not what.get("holder") and not values.has_nan(value)
            made = None if is_meant else self._made(value, is_constant)
            if made is not None:
                self.all.append(made)
                return made
        return super()._new(value, **what)

    def _made(self, value: Any, is_copied: bool) -> Origin | None:
        """Returns the operation of eager code behind a value, before all of the call.

        Args:
          value: The non-finite tensor.
          is_copied: Whether a function has a copy of it, as of a small constant.
        """
        before = followed()
        if before is None:
            return None
        origins = before.origins(value)
        if is_copied:
            held = (each.value() for each in list(before._marks.values()))
            alike = (each for each in held if values.is_same(value, each))
            origins = before.origins(next(alike, value))
        return self._first(origins)

    def _first(self, origins: Origins) -> Origin | None:
        """Returns the first of eager operations, unless the program means its value."""
        known = [each for each in origins if each.step and each.step.type != _OPAQUE]
        if not known or any(each.is_intended for each in origins):
            return None
        first = copy.copy(min(known, key=lambda each: each.order))
        first.order -= sys.maxsize
        first.met = list(first.met)
        return first
