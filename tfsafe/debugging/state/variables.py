"""Reads the variables that a call may change, and restores them."""

import inspect
import types
from collections.abc import Callable, Iterable, Iterator
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfsafe import _compat


class Slot(NamedTuple):
    """A variable, by its handle: the object itself may be gone.

    Attributes:
      handle: Resource tensor.
      dtype: Dtype of the value.
      name: Name for messages; empty where it is not known.
      is_trainable: Whether the training is about it.
    """

    handle: tf.Tensor
    dtype: tf.DType
    name: str
    is_trainable: bool = False

    @property
    def label(self) -> str:
        """What to call it in a message."""
        return f"variable `{self.name}`" if self.name else "a variable"

    def read(self) -> tf.Tensor:
        """Returns the value. TensorFlow copies it only once the variable changes."""
        return tf.raw_ops.ReadVariableOp(resource=self.handle, dtype=self.dtype)

    def write(self, value: tf.Tensor) -> None:
        """Sets the value."""
        tf.raw_ops.AssignVariableOp(resource=self.handle, value=value)


# Names of variables by `id` of the handle, and how to get them.
Names = dict[int, str]
NamesOf = Callable[[], Names]
# A variable with its value before the call.
Held = tuple[Slot, tf.Tensor]


def restore(held: Iterable[Held]) -> None:
    """Sets variables to the values that they had."""
    for slot, value in held:
        slot.write(value)


def slot_of(variable: tf.Variable, names: Names) -> Slot:
    """Returns the slot of a variable."""
    own = variable.name.partition(":")[0]
    name = names.get(id(variable.handle), own)
    return Slot(variable.handle, variable.dtype, name, bool(variable.trainable))


def variables_in(thing: Any) -> Iterator[tf.Variable]:
    """Yields the TensorFlow variables of a variable, a module or a container.

    Of a distributed variable those of the single replicas: the variable itself has no
    handle outside of a replica.
    """
    if isinstance(thing, tf.distribute.DistributedValues):
        yield from thing.distribute_strategy.experimental_local_results(thing)
    elif isinstance(thing, tf.Variable):
        yield thing
    elif _compat.is_keras_variable(thing):
        yield from variables_in(thing.value)
    elif isinstance(thing, tf.random.Generator):
        yield thing.state
    elif isinstance(thing, dict):
        yield from variables_in(list(thing.values()))
    elif isinstance(thing, list | tuple):
        for each in thing:
            yield from variables_in(each)
    elif isinstance(thing, _OWNERS):
        yield from variables_in(list(thing.variables))
        yield from variables_in(getattr(thing, "optimizer", None))


_OWNERS = (
    tf.Module,
    keras.Layer,
    keras.Optimizer,
    keras.Metric,
    keras.random.SeedGenerator,
)


def reachable(function: Any, arguments: Iterable[Any]) -> list[tf.Variable]:
    """Returns the variables that a Python function can reach by name.

    Those of its arguments, of the object that it is a method of, of its closure and
    of the globals that it mentions.
    """
    things = list(arguments)
    if inspect.ismethod(function):
        things.append(function.__self__)
        function = function.__func__
    if inspect.isfunction(function):
        around = inspect.getclosurevars(function)
        things += [*around.nonlocals.values(), *around.globals.values()]
    things += [part for thing in things for part in _attributes(thing)]
    found = {id(each.handle): each for thing in things for each in variables_in(thing)}
    return list(found.values())


def _attributes(thing: Any) -> list[Any]:
    """Returns what an object of the user's own class holds."""
    if isinstance(thing, type | types.ModuleType | types.FunctionType | tf.Tensor):
        return []
    return list(getattr(thing, "__dict__", {}).values())
