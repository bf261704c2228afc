"""Calls a function as soon as a package has been imported."""

import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Callable, Iterable, Sequence


class AfterImport(importlib.abc.MetaPathFinder):
    """Calls a function once, when the first of some packages has been imported.

    It waits while another of them is still being imported, as Keras is when it imports
    TensorFlow: half of its names do not exist yet.

    Args:
      packages: Names of packages of the top level.
      action: What to call. An exception from it comes out of the `import`.

    Attributes:
      is_done: Whether `action` was called.
    """

    def __init__(self, packages: Iterable[str], action: Callable[[], None]):
        self.is_done = False
        self._packages = frozenset(packages)
        self._action = action
        self._under_way = 0
        self._is_asking = False

    def install(self) -> None:
        """Starts to watch; calls the action at once if one is loaded already."""
        if any(name in sys.modules for name in self._packages):
            self._act()
        else:
            sys.meta_path.insert(0, self)

    def remove(self) -> None:
        """Ends the watch."""
        if self in sys.meta_path:
            sys.meta_path.remove(self)

    def find_spec(
        self,
        fullname: str,
        path: Sequence[str] | None = None,
        target: types.ModuleType | None = None,
    ) -> importlib.machinery.ModuleSpec | None:
        """Lets the other finders find a package, and adds to its loading."""
        # Two watchers of one package ask each other: skip the one that began.
        if fullname not in self._packages or self._is_asking:
            return None
        self._is_asking = True
        try:
            return self._found(fullname, path, target)
        finally:
            self._is_asking = False

    def _found(
        self,
        fullname: str,
        path: Sequence[str] | None,
        target: types.ModuleType | None,
    ) -> importlib.machinery.ModuleSpec | None:
        finders = [
            each
            for each in sys.meta_path
            if each is not self and hasattr(each, "find_spec")
        ]
        specs = (each.find_spec(fullname, path, target) for each in finders)
        spec = next((each for each in specs if each is not None), None)
        if spec is not None and spec.loader is not None:
            self._watch(spec.loader)
        return spec

    def _watch(self, loader: importlib.abc.Loader) -> None:
        # The loader itself must stay the same object: others read files through it.
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            # Absent if another watcher of the same import was there first.
            vars(loader).pop("exec_module", None)
            self._under_way += 1
            try:
                execute(module)
            finally:
                self._under_way -= 1
            if not self._under_way:
                self._act()

        vars(loader)["exec_module"] = exec_module

    def _act(self) -> None:
        self.remove()
        self.is_done = True
        self._action()
