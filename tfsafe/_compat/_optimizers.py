"""Wraps the internals of Keras' optimizers, each by its purpose."""

from collections.abc import Sequence
from typing import Any

from tfsafe._compat._keras import tf_variable

# What Keras' `SwapEMAWeights` reads of the optimizer that it finds under a
# `LossScaleOptimizer`. Tried: Keras 3.3.3 and 3.15.1.
OPTIMIZER_INTERNALS = (
    "_distribution_strategy",
    "_model_variables_moving_average",
    "_trainable_variables",
)


def built_variables(optimizer: Any) -> list[Any]:
    """Returns the variables that a Keras optimizer was built with.

    Tried: Keras 3.3.3 and 3.15.1.
    """
    return list(optimizer._trainable_variables)


def variable_positions(optimizer: Any, variables: Sequence[Any]) -> list[int]:
    """Returns the positions of variables in the list an optimizer was built with.

    Uses Keras' index, which counts the replicas of a distributed variable as one.
    Tried: Keras 3.3.3 and 3.15.1.

    Returns:
      One position per variable.

    Raises:
      ValueError: Keras' own, if the optimizer does not know one of them.
    """
    optimizer._check_variables_are_known(variables)
    return [optimizer._get_variable_index(variable) for variable in variables]


def strategy_of(optimizer: Any) -> Any:
    """Returns the distribution strategy under which a Keras optimizer was made.

    Tried: Keras 3.3.3 and 3.15.1.
    """
    return optimizer._distribution_strategy


def variable_key(optimizer: Any, variable: Any) -> Any:
    """Returns the key by which a Keras optimizer identifies a variable.

    All its replicas have the same key. Tried: Keras 3.3.3 and 3.15.1.
    """
    return optimizer._var_key(variable)


def without_weight_decay(optimizer: Any, variables: Sequence[Any]) -> list[Any]:
    """Returns the variables that a Keras optimizer excludes from its weight decay.

    Keras compares the names of TensorFlow's variables. Tried: Keras 3.3.3 and 3.15.1.
    """
    return [v for v in variables if not optimizer._use_weight_decay(tf_variable(v))]


def centered_moments(optimizer: Any, variable: Any) -> tuple[Any, Any]:
    """Returns the slots of a centered `RMSprop`: mean square and mean of the gradient.

    Tried: Keras 3.3.3 and 3.15.1.
    """
    index = optimizer._get_variable_index(variable)
    return optimizer._velocities[index], optimizer._average_gradients[index]
