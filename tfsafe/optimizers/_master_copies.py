"""Trains float32 copies in place of variables in half precision."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe.optimizers import _gradient_check

Pairs = Sequence[tuple[Any, Any]]


class MasterCopies:
    """Trains variables in half precision through float32 copies.

    The field's *master weights*. A step of 1e-3 is lost on a bfloat16 weight of 1,
    whose neighbours are 4e-3 away, and so are `1 - beta_2` and `epsilon` in slots of
    that dtype. So the whole step is taken in float32, on a copy of the weight that
    keeps the digits for the next step, and the weight gets the copy's value, rounded.
    See Micikevicius et al., "Mixed Precision Training", ICLR 2018.

    Args:
      inner: Keras optimizer, not built yet: it is to be built with `of(variables)`.
      variables: The variables to train, of any dtype.
      add_variable: `add_variable` of the Keras optimizer that owns the copies.

    Attributes:
      variables: The variables.
    """

    def __init__(
        self,
        inner: Any,
        variables: Sequence[Any],
        add_variable: Callable[..., keras.Variable],
    ):
        self._inner = inner
        self.variables = tuple(variables)
        self._pairs = [(_copy(v, add_variable), v) for v in variables if is_half(v)]
        self._by_key = {self._key(v): copy for copy, v in self._pairs}

    def __iter__(self) -> Iterator[keras.Variable]:
        return iter([copy for copy, _ in self._pairs])

    def of(self, variables: Sequence[Any]) -> list[Any]:
        """Returns the variables, with copies in place of those in half precision."""
        if not self._pairs:
            return list(variables)
        return [self._by_key.get(self._key(v), v) for v in variables]

    def take_over(self) -> None:
        """Updates the copies from variables that were written to since `write_back`.

        A checkpoint, a callback or the user writes to them. Where an element still has
        the rounded value of its copy, the copy keeps all its digits.
        """
        self._on_each_device(_take_over, self._pairs)

    def write_back(self) -> None:
        """Writes the values of the copies to their variables, rounded once."""
        self._on_each_device(_round_into, [(v, copy) for copy, v in self._pairs])

    def exclude_from_weight_decay(self) -> None:
        """Excludes the copies of the variables that the optimizer excludes."""
        if not self._pairs:
            return
        for optimizer in getattr(self._inner, "optimizers", None) or [self._inner]:
            excluded = _compat.without_weight_decay(optimizer, self.variables)
            optimizer.exclude_from_weight_decay(var_list=self.of(excluded))

    def _key(self, variable: Any) -> Any:
        return _compat.variable_key(self._inner, variable)

    def _on_each_device(self, function: Callable[..., Any], pairs: Pairs) -> None:
        """Calls `function` with the two variables of each pair, as Keras' steps do."""
        for pair in pairs:
            target, source = map(_compat.tf_variable, pair)
            extended = _compat.strategy_of(self._inner).extended
            extended.update(target, function, args=(source,), group=False)


def is_half(variable: Any) -> bool:
    """Returns whether a variable is trained in float16 or bfloat16."""
    is_trained = not _gradient_check.is_overwritten(variable)
    return is_trained and tf.as_dtype(variable.dtype) in {tf.float16, tf.bfloat16}


def widened(gradient: Any, variable: Any) -> Any:
    """Returns the gradient of a variable in half precision in float32."""
    return tf.cast(gradient, tf.float32) if is_half(variable) else gradient


def _copy(variable: Any, add_variable: Callable[..., Any]) -> keras.Variable:
    # Create it outside a step that is being traced.
    with tf.init_scope():
        copy = add_variable(
            variable.shape,
            lambda _, dtype: tf.cast(variable, dtype),
            "float32",
            aggregation="only_first_replica",
            # TensorFlow's are called "scope/kernel:0".
            name=variable.name.partition(":")[0].rpartition("/")[-1],
        )
    if hasattr(variable, "path"):
        # Keras' `MultiOptimizer` and `Muon` use the path.
        _compat.set_path(copy, variable.path)
    copy.constraint = variable.constraint
    return copy


def _take_over(copy: tf.Variable, variable: tf.Variable) -> None:
    # Compare bits: XLA may omit a rounding that it considers superfluous.
    rounded = tf.bitcast(tf.cast(copy, variable.dtype), tf.uint16)
    is_same = tf.equal(rounded, tf.bitcast(tf.convert_to_tensor(variable), tf.uint16))
    copy.assign(tf.where(is_same, copy, tf.cast(variable, copy.dtype)))


def _round_into(variable: tf.Variable, copy: tf.Variable) -> None:
    variable.assign(tf.cast(copy, variable.dtype))
