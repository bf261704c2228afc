"""Extends the look-up by which Keras finds the classes that a file names."""

import functools
from collections.abc import Callable
from typing import Any


def load_on_demand(prefix: str, load: Callable[[], None]) -> None:
    """Calls `load` when Keras finds no class of a registered name, and looks again.

    `object_registration.get_registered_object`, through which all deserialization
    goes. The public `custom_objects` would need the classes to be imported. Tried:
    Keras 3.15.1.

    Args:
      prefix: Prefix of such a name.
      load: Registers the classes.
    """
    from keras.src.saving import object_registration as registry

    plain = registry.get_registered_object

    @functools.wraps(plain)
    def look_up(name: Any, *args: Any, **kwargs: Any) -> Any:
        found = plain(name, *args, **kwargs)
        if found is None and isinstance(name, str) and name.startswith(prefix):
            load()
            found = plain(name, *args, **kwargs)
        return found

    registry.get_registered_object = look_up
