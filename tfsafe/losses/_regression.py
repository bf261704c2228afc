"""Provides Keras' losses of regression, with safe weights and formulas."""

import keras

from tfsafe.keras_formulas import regression
from tfsafe.losses._reduction import Weighted, safe


@safe
class MeanSquaredError(Weighted, keras.losses.MeanSquaredError):
    """Mean of the squared errors, `mean((y_pred - y_true)^2)`.

    `keras.losses.MeanSquaredError`, in which a weight of 0 or a mask removes NaN and
    overflow, and half precision is counted and summed in float32.

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.MeanSquaredError()
      >>> y_true = [[float("nan")], [1.0]]
      >>> print(loss(y_true, [[1.0], [3.0]], sample_weight=[0, 1]).numpy())
      2.
    """

    formula = staticmethod(regression.mean_squared_error)


@safe
class MeanAbsoluteError(Weighted, keras.losses.MeanAbsoluteError):
    """Mean of the errors' magnitudes, `mean(|y_pred - y_true|)`.

    `keras.losses.MeanAbsoluteError`, in which a weight of 0 or a mask removes NaN and
    overflow, and half precision is counted and summed in float32.

    Numerics:
      no error          slope 0

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.MeanAbsoluteError()
      >>> y_true = [[float("nan")], [1.0]]
      >>> print(loss(y_true, [[1.0], [3.0]], sample_weight=[0, 1]).numpy())
      1.
    """

    formula = staticmethod(regression.mean_absolute_error)


@safe
class MeanAbsolutePercentageError(Weighted, keras.losses.MeanAbsolutePercentageError):
    """Mean of the relative errors, `100 * mean(|y_pred - y_true| / |y_true|)`.

    `keras.losses.MeanAbsolutePercentageError`, in which a target of 0 counts 100 %,
    not a thousand million.

    Numerics:
      target 0          value 100 and slope 0; value 0 if the prediction is 0 as well
                        (a bounded choice)

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.MeanAbsolutePercentageError()
      >>> print(loss([[0.0], [2.0]], [[1.0], [1.0]]).numpy())
      75.
    """

    formula = staticmethod(regression.mean_absolute_percentage_error)


@safe
class MeanSquaredLogarithmicError(Weighted, keras.losses.MeanSquaredLogarithmicError):
    """Mean of `(log(1 + y_pred) - log(1 + y_true))^2`.

    `keras.losses.MeanSquaredLogarithmicError` without its clip at 1e-7, which leaves
    an output between -1 and 0 without a gradient, and with all digits of small errors.

    Numerics:
      y_pred <= -1      the logarithm continues with slope 1 from its value at the next
                        number above -1, -16.6 in float32 (a bounded choice)
      y_true <= -1      counts as 0, as in Keras (a bounded choice)

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.MeanSquaredLogarithmicError()
      >>> print(loss([[1.0]], [[-0.5]]).numpy())
      1.9218121
    """

    formula = staticmethod(regression.mean_squared_logarithmic_error)


@safe
class Huber(Weighted, keras.losses.Huber):
    """Half the square of an error up to `delta`, and a line beyond.

    `keras.losses.Huber`, in which a weight of 0 or a mask removes a NaN, half
    precision is counted and summed in float32, and `delta` survives a saved model.

    Args:
      delta: The error at which the square becomes a line.

    Examples:
      >>> from tfsafe import losses
      >>> loss = losses.Huber(delta=2.0)
      >>> y_true = [[float("nan")], [1.0]]
      >>> print(loss(y_true, [[1.0], [4.0]], sample_weight=[0, 1]).numpy())
      2.
    """

    formula = staticmethod(regression.huber)


@safe
class LogCosh(Weighted, keras.losses.LogCosh):
    """Mean of `log(cosh(y_pred - y_true))`.

    `keras.losses.LogCosh` with all digits of small errors, for which Keras' is 0, and
    in which a weight of 0 or a mask removes a NaN or an overflow.

    Examples:
      >>> from tfsafe import losses
      >>> print(losses.LogCosh()([[0.0]], [[1e-4]]).numpy())
      5e-09
    """

    formula = staticmethod(regression.log_cosh)
