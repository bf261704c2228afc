"""Names the parts of nested data, and rebuilds the structure around new parts."""

from collections.abc import Iterator, Mapping
from typing import Any

# The order in which `fit` unpacks a tuple.
_ROLES = ("x", "y", "sample_weight")


def parts(data: Any) -> list[tuple[str, Any]]:
    """Returns the leaves of nested data with their paths, such as `x["age"]`.

    A tuple at the top is `(x, y, sample_weight)`, as for `fit`; anything else is `x`.
    None is not a leaf.
    """
    if _is_roles(data):
        return [
            found
            for role, part in zip(roles(data), data, strict=True)
            for found in _walk(part, role)
        ]
    return list(_walk(data, "x"))


def roles(data: Any) -> list[str]:
    """Returns the names of the parts at the top level."""
    if not _is_roles(data):
        return ["x"]
    if len(data) <= len(_ROLES):
        return list(_ROLES[: len(data)])
    return [f"part_{number}" for number in range(len(data))]


def rebuilt(data: Any, new: Iterator[Any]) -> Any:
    """Returns the same structure with its leaves replaced, in the order of `parts`."""
    if data is None:
        return None
    if isinstance(data, Mapping):
        return {key: rebuilt(part, new) for key, part in data.items()}
    if _is_named(data):
        return type(data)(*(rebuilt(part, new) for part in data))
    if isinstance(data, tuple) or (isinstance(data, list) and not is_plain(data)):
        return type(data)(rebuilt(part, new) for part in data)
    return next(new)


def is_plain(data: Any) -> bool:
    """Returns whether a list is an array written out: of numbers or words, nested."""
    while isinstance(data, list | tuple) and data:
        data = data[0]
    return data is None or isinstance(data, str | bytes | int | float | complex)


def _is_named(data: Any) -> bool:
    return isinstance(data, tuple) and hasattr(data, "_fields")


def _is_roles(data: Any) -> bool:
    return isinstance(data, tuple) and bool(data) and not _is_named(data)


def _walk(data: Any, path: str) -> Iterator[tuple[str, Any]]:
    if data is None:
        return
    if isinstance(data, Mapping):
        for key, part in data.items():
            yield from _walk(part, f"{path}[{quoted(key)}]")
    elif _is_named(data):
        for field, part in zip(data._fields, data, strict=True):
            yield from _walk(part, f"{path}.{field}")
    elif isinstance(data, tuple) or (isinstance(data, list) and not is_plain(data)):
        for number, part in enumerate(data):
            yield from _walk(part, f"{path}[{number}]")
    else:
        yield path, data


def quoted(key: Any) -> str:
    """Returns a key in the syntax of Python, a string in double quotes."""
    return f'"{key}"' if isinstance(key, str) else repr(key)
