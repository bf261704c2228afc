"""The Python stacks that TensorFlow notes for operations and shows in its errors."""

import contextlib
import functools
import pathlib
import re
from collections.abc import Callable, Iterator
from typing import Any


@functools.cache
def _hidden() -> frozenset[str]:
    """Returns all files but this one, whose frames are shown as the program's."""
    files = map(str, pathlib.Path(__file__).parent.parent.rglob("*.py"))
    return frozenset(files) - {__file__}


def _at(_: Any, function: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
    return function(*args, **kwargs)


@contextlib.contextmanager
def stacks_of_program() -> Iterator[Callable[..., Any]]:
    """Gives operations that are made in the block the stacks of the program's.

    `tf_stack.StackTraceFilter` and `StackTraceMapper`, by which AutoGraph shows the
    code that it converted. Tried: TensorFlow 2.16.1 and 2.21.0. Where they are missing,
    the stacks are those of the package.

    Yields:
      A function `at(frames, function, ...)` that calls `function(...)`: what that makes
      has the frames as its innermost ones. These are two at most, outermost first.
    """
    try:
        from tensorflow.python.util import tf_stack

        class Filter(tf_stack.StackTraceFilter):
            def get_filtered_filenames(self) -> Any:
                return _hidden() | self.parent.get_filtered_filenames()

        class Mapper(tf_stack.StackTraceMapper):
            internal_map: Any

            def __init__(self) -> None:
                super().__init__()
                self._maps: dict[Any, Any] = {}

            def get_effective_source_map(self) -> Any:
                return self.parent.get_effective_source_map()

            def _showing(self, frames: Any) -> Any:
                # Few frames make all operations.
                if frames not in self._maps:
                    first = self.at.__code__.co_firstlineno
                    lines = (first + 4, first + 10) if frames[1:] else (first + 5,)
                    shown = zip(((__file__, x) for x in lines), frames, strict=False)
                    around = self.get_effective_source_map().items()
                    self._maps[frames] = type(self.internal_map)()
                    self._maps[frames].update_to((*around, *shown))
                return self._maps[frames]

            # The lines of the calls are shown as the frames.
            def at(self, frames: Any, function: Any, *args: Any, **kwargs: Any) -> Any:
                before, self.internal_map = self.internal_map, self._showing(frames)
                try:
                    if frames[1:]:
                        return self._within(function, *args, **kwargs)
                    return function(*args, **kwargs)
                finally:
                    self.internal_map = before

            def _within(self, function: Any, *args: Any, **kwargs: Any) -> Any:
                return function(*args, **kwargs)

        mapper, hiding = Mapper(), Filter()
    except (ImportError, AttributeError):
        yield _at
        return
    with mapper, hiding:
        yield mapper.at


def hide_noted_frames(error: Any, paths: tuple[str, ...]) -> None:
    """Leaves frames of files that begin so out of the message of a kernel's error.

    `OpError._message`, to which TensorFlow adds the stack of the operation. Tried:
    TensorFlow 2.16.1 and 2.21.0. The message of another error stays.
    """
    message = getattr(error, "_message", None)
    if isinstance(message, str):
        begins = "|".join(map(re.escape, (*paths, "<frozen runpy>")))
        frames = rf'^  File "(?:{begins})[^\n]*\n(?:    [^\n]*\n)*\n?'
        error._message = re.sub(frames, "", message, flags=re.MULTILINE)
