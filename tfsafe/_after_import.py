"""Calls a function as soon as a package has been imported."""

import contextlib
import importlib.abc
import importlib.machinery
import os
import re
import sys
import types
from collections.abc import Callable, Iterable, Iterator, Sequence

from tfsafe._faults import contained

# What TensorFlow writes while it is imported, whatever its log level is.
_START_UP = re.compile(
    rb"(WARNING: All log messages before absl|[IWE]\d{4} \d\d:\d\d|[IWE]0000 00:00:"
    rb"|To enable the following instructions|To suppress this warning)"
)


@contextlib.contextmanager
def quiet() -> Iterator[None]:
    """Drops TensorFlow's start-up log from standard error, and nothing else.

    Where the user has chosen a log level with `TF_CPP_MIN_LOG_LEVEL`, nothing changes.
    """
    if "TF_CPP_MIN_LOG_LEVEL" in os.environ:
        yield
        return
    import tempfile

    os.environ["TF_CPP_MIN_LOG_LEVEL"] = "3"
    file = None
    # A program may have no standard error, or no folder for temporary files.
    with contextlib.suppress(AttributeError, OSError, ValueError):
        sys.stderr.flush()
        shown, file = os.dup(2), tempfile.TemporaryFile()  # noqa: SIM115
    if file is None:
        yield
        return
    with file:
        os.dup2(file.fileno(), 2)
        try:
            yield
        finally:
            sys.stderr.flush()
            os.dup2(shown, 2)
            os.close(shown)
            file.seek(0)
            os.write(2, b"".join(each for each in file if not _START_UP.match(each)))


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
            with contained("watching an import"):
                self._watch(spec.loader)
        return spec

    def _watch(self, loader: importlib.abc.Loader) -> None:
        # The loader itself must stay the same object: others read files through it.
        execute = loader.exec_module

        def exec_module(module: types.ModuleType) -> None:
            # Absent if another watcher of the same import was there first.
            vars(loader).pop("exec_module", None)
            self._under_way += 1
            calm = quiet() if self._under_way == 1 else contextlib.nullcontext()
            try:
                with calm:
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
