"""Looking at tensors and arrays: which elements are not finite, and of what kind."""

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import tensorflow as tf

# In the path of a value that each replica has a part of.
_ON_REPLICA = re.compile(r" \(replica (\d+)\)")


def is_float(value: Any) -> bool:
    """Returns whether `value` is a dense floating tensor, complex ones included."""
    return isinstance(value, tf.Tensor) and (
        value.dtype.is_floating or value.dtype.is_complex
    )


def is_number(value: Any) -> bool:
    """Returns whether `value` is a dense tensor that NumPy can hold."""
    return isinstance(value, tf.Tensor) and value.dtype not in {
        tf.resource,
        tf.variant,
    }


def is_finite(tensor: tf.Tensor) -> bool:
    """Returns whether every element is finite."""
    if not _is_on_host(tensor):
        # One number crosses to the host, not the tensor.
        real = tf.math.abs(tensor) if tensor.dtype.is_complex else tensor
        return bool(tf.reduce_all(tf.math.is_finite(real)))
    return bool(np.isfinite(array(tensor)).all())


def _is_on_host(tensor: tf.Tensor) -> bool:
    return "CPU" in tensor.device


def is_clean(value: Any) -> bool:
    """Returns whether `value` holds no NaN and no Inf, whatever it is."""
    if is_float(value):
        return is_finite(value)
    if isinstance(value, np.ndarray | np.generic | float):
        array = np.asarray(value)
        return array.dtype.kind not in "fc" or bool(np.isfinite(array).all())
    return True


def is_same(one: Any, other: Any) -> bool:
    """Returns whether two tensors or arrays hold the same numbers, NaN included."""
    if not is_float(other) or tuple(one.shape) != tuple(other.shape):
        return False
    if isinstance(one, tf.Tensor) and one.dtype != other.dtype:
        return False
    return np.array_equal(numbers(one), numbers(other), equal_nan=True)


def name_in(names: Mapping[str, Any], value: Any) -> str:
    """Returns the name of a value among a program's own; empty without one.

    A tensor with NaN that TensorFlow made of an array has the name of the array.
    """
    # The program may still run, in another thread.
    known = list(names.items())
    own = [each for each, held in known if held is value]
    if not own and is_float(value) and not value.dtype.is_complex and has_nan(value):
        arrays = (
            (each, held)
            for each, held in known
            if isinstance(held, np.ndarray) and held.dtype.kind == "f"
        )
        dtype = value.dtype.as_numpy_dtype
        own = [each for each, x in arrays if is_same(x.astype(dtype), value)]
    name = next((each for each in own if not each.startswith("_")), "")
    return f"`{name}`" if name else ""


def array(value: Any) -> np.ndarray:
    """Returns a tensor as a NumPy array of its dtype."""
    # NumPy cannot make an array of a single bfloat16 by itself.
    is_single = isinstance(value, tf.Tensor) and not value.shape.rank
    return np.asarray(value.numpy() if is_single else value)


def numbers(value: Any) -> np.ndarray:
    """Returns a tensor as a NumPy array, floats as float64."""
    given = array(value)
    if given.dtype.kind in "iubcO" or given.dtype == np.float64:
        return given
    return given.astype(np.float64)


def has_nan(tensor: Any) -> bool:
    """Returns whether a floating tensor has a NaN."""
    return bool(np.isnan(numbers(tensor)).any())


def kind(array: np.ndarray) -> str:
    """Names the kinds of non-finite values that an array holds.

    Returns:
      `"NaN"`, `"+Inf"`, `"-Inf"`, several joined by ` and `, or an empty string.
    """
    real = np.concatenate([np.ravel(array.real), np.ravel(array.imag)])
    found = {
        "NaN": np.isnan(real).any(),
        "+Inf": np.isposinf(real).any(),
        "-Inf": np.isneginf(real).any(),
    }
    return " and ".join(name for name, there in found.items() if there)


def first(mask: np.ndarray) -> tuple[int, ...]:
    """Returns the index of the first true element."""
    return tuple(int(each) for each in np.argwhere(mask)[0])


# Ends the path of the row splits of a ragged tensor.
SPLITS = ".row_splits"


def row_splits(parts: Mapping[str, Any], path: str) -> np.ndarray | None:
    """Returns where the rows of a ragged tensor begin and end in its values.

    Args:
      parts: The arguments of a call, by path.
      path: That of the values.

    Returns:
      The splits of the outermost rows; None if it is not ragged.
    """
    found: np.ndarray | None = None
    while (inner := parts.get(f"{path}{SPLITS}")) is not None:
        inner = array(inner)
        found = inner if found is None else inner[found]
        path += ".values"
    return found


def leaves(structure: Any, label: str) -> Iterator[tuple[str, Any]]:
    """Yields the leaves of nested dicts, lists and tuples, each with its path.

    Args:
      structure: What to walk through.
      label: Path of `structure` itself.

    Yields:
      Path and leaf. The dense parts of a sparse tensor, and the fields of a
      `tf.experimental.ExtensionType`, have its path; so have the values of a ragged
      one, whose splits follow under `SPLITS`.
    """
    if isinstance(structure, dict):
        for key, value in structure.items():
            yield from leaves(value, f"{label}[{key!r}]")
    elif isinstance(structure, tuple) and hasattr(structure, "_fields"):
        for name in structure._fields:
            yield from leaves(getattr(structure, name), f"{label}.{name}")
    elif isinstance(structure, list | tuple):
        for index, value in enumerate(structure):
            yield from leaves(value, f"{label}[{index}]")
    elif isinstance(structure, tf.Variable):
        yield label, structure
    elif isinstance(structure, tf.RaggedTensor):
        yield label, structure.flat_values
        for inner, splits in enumerate(structure.nested_row_splits):
            yield f"{label}{'.values' * inner}{SPLITS}", splits
    elif isinstance(structure, tf.distribute.DistributedValues):
        for replica, part in enumerate(structure.values):
            yield from leaves(part, f"{label} (replica {replica})")
    else:
        for part in tf.nest.flatten(structure, expand_composites=True):
            yield label, part


def replica_in(label: str) -> str:
    """Returns the number of the replica that a path names; empty without one."""
    found = _ON_REPLICA.search(label)
    return found[1] if found else ""


def without_replica(label: str) -> str:
    """Returns a path without the number of a replica."""
    return _ON_REPLICA.sub("", label)


# Divisions, by the index of their denominator: an infinite one makes a quotient of 0.
DENOMINATORS = {
    "Div": 1,
    "DivNoNan": 1,
    "RealDiv": 1,
    "Xdivy": 1,
    "Reciprocal": 0,
    "Inv": 0,
    "Rsqrt": 0,
}
# Their overflow is right to the last digit where a division turns it into 0.
_FAST_GROWING = frozenset({"Exp", "Expm1", "Sinh", "Cosh", "Pow"})


def may_absorb(op_type: str) -> bool:
    """Returns whether an operation can turn an overflow into a 0 that is wrong.

    The reciprocal of what overflows is 0, to the precision of the dtype.
    """
    return op_type in DENOMINATORS and op_type not in ("Reciprocal", "Inv")


def is_absorbed(op_type: str, inputs: Sequence[tf.Tensor]) -> tf.Tensor:
    """Returns whether a division turns an overflow into a 0 that is wrong.

    A numerator below 4 has a quotient of 0 by any number that overflows, to the
    precision of the dtype. A root was larger than what is under it can show.
    """
    denominator = inputs[DENOMINATORS[op_type]]
    infinite = tf.math.is_inf(denominator)
    if op_type == "Rsqrt":
        return tf.reduce_any(infinite)
    # Without a tensor of numbers, which would need the memory of another gradient.
    is_large = tf.logical_or(inputs[0] > 4, inputs[0] < -4)
    return tf.reduce_any(tf.logical_and(infinite, is_large))


def is_wrong_zero(op_type: str, inputs: Sequence[tf.Tensor], made_by: str) -> bool:
    """Returns whether a division turns the overflow of an operation into a wrong 0."""
    return made_by not in _FAST_GROWING and bool(is_absorbed(op_type, inputs))


# Operations that make integers of floating numbers, and of NaN too, by the index of the
# input that they choose by.
CHOICES = {
    "ArgMax": 0,
    "ArgMin": 0,
    "Bucketize": 0,
    "Cast": 0,
    "InTopK": 0,
    "InTopKV2": 0,
    "LowerBound": 1,
    "Multinomial": 0,
    "StatelessMultinomial": 0,
    "TopKV2": 0,
    "UpperBound": 1,
}
# Operations whose output has every element of these inputs, or what it is the index of.
_FIRST = ("Cast", "ExpandDims", "Identity", "OneHot", "Reshape", "ReverseV2", "Squeeze")
_PASS_ON = {
    **dict.fromkeys([*_FIRST, "StridedSlice", "Transpose"], slice(1)),
    **dict.fromkeys(["GatherV2", "LookupTableFindV2"], slice(1, 2)),
    **dict.fromkeys(["IdentityN", "Pack"], slice(None)),
    "ConcatV2": slice(-1),
    **dict.fromkeys(["TensorListFromTensor", "TensorListStack"], slice(1)),
    "TensorListPushBack": slice(None),
    # The list, an index and the element.
    "TensorListSetItem": slice(0, 3, 2),
}


def chosen_by(
    op_type: str, inputs: Sequence[tf.Tensor], output: tf.Tensor
) -> tf.Tensor | None:
    """Returns the floating numbers that an operation makes integers of, if it does.

    Comparisons do not count: programs select by them what is not NaN.
    """
    if is_float(output) or op_type not in CHOICES:
        return None
    numbers = inputs[CHOICES[op_type]]
    return numbers if is_float(numbers) else None


def passed_on(
    op_type: str, inputs: Sequence[tf.Tensor], output: tf.Tensor
) -> Sequence[tf.Tensor]:
    """Returns the inputs that an operation neither drops nor masks an element from."""
    if op_type == "StridedSlice" and not _drops_axes_of_one(inputs[0], output):
        return ()
    return tuple(inputs)[_PASS_ON[op_type]] if op_type in _PASS_ON else ()


def _drops_axes_of_one(tensor: tf.Tensor, part: tf.Tensor) -> bool:
    """Returns whether a slice has all elements of a tensor, with fewer axes."""
    if tensor.shape.rank is None or part.shape.rank is None:
        return False
    longer = [[size for size in each.shape if size != 1] for each in (tensor, part)]
    return part.shape.rank < tensor.shape.rank and longer[0] == longer[1]
