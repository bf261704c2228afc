"""Makes Keras' recurrent layers safe for padding of NaN and for empty sequences."""

import functools
import inspect
from typing import Any

import keras
import tensorflow as tf

from tfsafe.layers.core.masking import hide
from tfsafe.layers.options import member_of_family

# Mixin; the Keras layer comes next in the MRO.
_KerasLayer: Any = object

_SHARED = """
    Call arguments:
      sequences: Tensor of shape `(batch, steps, features)`, where `RNN` and the
        convolutions take more axes of features.
      initial_state: The first states, as a list; zeros if None.
      mask: Booleans of shape `(batch, steps)`, True where a step counts.
      training: Whether to drop.

    Output shape:
      That of the Keras layer; with `return_state` a list, the states after the output.

    Numerics:
      NaN masked  ignored, gradient 0; Keras' layer has a finite value, and NaN in the
                  gradients of all weights
      NaN kept    value NaN
      no step     output 0, states the initial ones, as for a sequence that is masked
                  as a whole; Keras' layer raises an error
    """


class _SafeSteps(_KerasLayer):
    """Hides masked steps from a recurrent Keras layer, and adds a missing step."""

    def call(
        self,
        sequences: tf.Tensor,
        initial_state: Any = None,
        mask: Any = None,
        training: bool = False,
    ) -> Any:
        """Runs the layer over the steps that the mask keeps."""
        if mask is not None:
            mask = tf.cast(tf.nest.flatten(mask)[0], tf.bool)
            sequences = hide(sequences, mask)
        if sequences.shape[1]:
            return super().call(
                sequences, initial_state=initial_state, mask=mask, training=training
            )
        # Keras' loop needs a first step. A masked one keeps the states; but a mask
        # makes the loop slower, so that the result of the extra step is replaced where
        # the number of steps is not known yet.
        count = tf.shape(sequences)[1]
        if mask is None and (sequences.shape[1] == 0 or self.stateful):
            mask = tf.fill(tf.shape(sequences)[:2], True)
        found = super().call(
            _at_least_one_step(sequences),
            initial_state=initial_state,
            mask=None if mask is None else _at_least_one_step(mask),
            training=training,
        )
        output, *states = found if self.return_state else [found]
        if self.return_sequences:
            output = output[:, :count]
        if mask is None:
            if initial_state is None:
                initial_state = self.get_initial_state(tf.shape(sequences)[0])
            exists = count > 0
            output = tf.where(exists, output, tf.zeros_like(output))
            before = tf.nest.flatten(initial_state)
            after = [
                tf.where(exists, new, tf.cast(old, new.dtype))
                for new, old in zip(tf.nest.flatten(states), before, strict=False)
            ]
            states = tf.nest.pack_sequence_as(states, after)
        return (output, *states) if self.return_state else output


class _SafeCuDNN(_SafeSteps):
    """Uses cuDNN for the batches whose mask it can take, Keras' loop for others.

    Keras' layer fails in a graph on a GPU where a mask begins with False, has holes, or
    hides a whole sequence.
    """

    def inner_loop(
        self,
        sequences: tf.Tensor,
        initial_state: Any,
        mask: Any,
        training: bool = False,
    ) -> Any:
        """Runs the loop over the steps, or its fused kernel."""
        given = {"mask": mask, "training": training}
        # Keras sets `supports_jit` to False where it may use cuDNN.
        if mask is None or self.use_cudnn != "auto" or self.supports_jit:
            return super().inner_loop(sequences, initial_state, **given)
        fused = super().inner_loop

        def run(inner_loop: Any) -> Any:
            last, outputs, states = inner_loop(sequences, initial_state, **given)
            return last, outputs, list(states)

        loop = functools.partial(keras.layers.RNN.inner_loop, self)
        return tf.cond(_is_right_padded(mask), lambda: run(fused), lambda: run(loop))


def _is_right_padded(mask: tf.Tensor) -> tf.Tensor:
    """Returns whether each sequence has steps that count, and they come first."""
    lengths = tf.math.count_nonzero(mask, 1, dtype=tf.int32)
    expected = tf.sequence_mask(lengths, tf.shape(mask)[1])
    return tf.reduce_all(tf.equal(mask, expected)) & tf.reduce_all(lengths > 0)


def _at_least_one_step(x: tf.Tensor) -> tf.Tensor:
    """Appends a step of zeros, or of False, to a sequence without a step."""
    steps = x.shape[1]
    missing = tf.maximum(1 - tf.shape(x)[1], 0) if steps is None else int(not steps)
    padded = tf.pad(x, [[0, 0], [0, missing], *[[0, 0]] * (x.shape.rank - 2)])
    known = None if steps is None else max(steps, 1)
    return tf.ensure_shape(padded, [x.shape[0], known, *x.shape[2:]])


@member_of_family(_SHARED)
class LSTM(_SafeCuDNN, keras.layers.LSTM):
    """`keras.layers.LSTM` for padding of NaN and for sequences without a step.

    Args:
      units: Size of the output, positive.
      *args: What `keras.layers.LSTM` takes next.
      **kwargs: The same by name.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.LSTM(4)(tf.zeros([2, 0, 3])).shape)
      (2, 4)
    """


@member_of_family(_SHARED)
class GRU(_SafeCuDNN, keras.layers.GRU):
    """`keras.layers.GRU` for padding of NaN and for sequences without a step.

    Args:
      units: Size of the output, positive.
      *args: What `keras.layers.GRU` takes next.
      **kwargs: The same by name.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.GRU(4)(tf.zeros([2, 0, 3])).shape)
      (2, 4)
    """


@member_of_family(_SHARED)
class SimpleRNN(_SafeSteps, keras.layers.SimpleRNN):
    """`keras.layers.SimpleRNN` for padding of NaN and for sequences without a step.

    Args:
      units: Size of the output, positive.
      *args: What `keras.layers.SimpleRNN` takes next.
      **kwargs: The same by name.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.SimpleRNN(4)(tf.zeros([2, 0, 3])).shape)
      (2, 4)
    """


@member_of_family(_SHARED)
class RNN(_SafeSteps, keras.layers.RNN):
    """`keras.layers.RNN` for padding of NaN and for sequences without a step.

    Args:
      cell: The cell, or a list of cells, to be stacked.
      *args: What `keras.layers.RNN` takes next.
      **kwargs: The same by name.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.RNN(layers.GRUCell(4))(tf.zeros([2, 0, 3])).shape)
      (2, 4)
    """


@member_of_family(_SHARED)
class ConvLSTM1D(_SafeSteps, keras.layers.ConvLSTM1D):
    """`keras.layers.ConvLSTM1D` for padding of NaN and for sequences without a step.

    Args:
      filters: Number of filters of the convolutions.
      kernel_size: Size of their windows.
      *args: What `keras.layers.ConvLSTM1D` takes next.
      **kwargs: The same by name.

    Input shape:
      `(batch, steps, rows, channels)`, or with the channels third.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.ConvLSTM1D(4, 3)(tf.zeros([1, 0, 8, 3])).shape)
      (1, 6, 4)
    """


@member_of_family(_SHARED)
class ConvLSTM2D(_SafeSteps, keras.layers.ConvLSTM2D):
    """`keras.layers.ConvLSTM2D` for padding of NaN and for sequences without a step.

    Args:
      filters: Number of filters of the convolutions.
      kernel_size: Size of their windows.
      *args: What `keras.layers.ConvLSTM2D` takes next.
      **kwargs: The same by name.

    Input shape:
      `(batch, steps, rows, columns, channels)`, or with the channels third.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.ConvLSTM2D(4, 3)(tf.zeros([1, 0, 8, 8, 3])).shape)
      (1, 6, 6, 4)
    """


@member_of_family(_SHARED)
class ConvLSTM3D(_SafeSteps, keras.layers.ConvLSTM3D):
    """`keras.layers.ConvLSTM3D` for padding of NaN and for sequences without a step.

    Args:
      filters: Number of filters of the convolutions.
      kernel_size: Size of their windows.
      *args: What `keras.layers.ConvLSTM3D` takes next.
      **kwargs: The same by name.

    Input shape:
      `(batch, steps, depth, rows, columns, channels)`, or with the channels third.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.ConvLSTM3D(4, 3)(tf.zeros([1, 0, 8, 8, 8, 3])).shape)
      (1, 6, 6, 6, 4)
    """


@keras.saving.register_keras_serializable(package="tfsafe")
class TimeDistributed(keras.layers.TimeDistributed):
    """`keras.layers.TimeDistributed` for any number of steps, including 0.

    Where the number of steps is unknown until the model runs, Keras' layer takes as
    many steps as the batch has rows.

    Args:
      layer: The layer for each step.
      **kwargs: What every Keras layer takes: `name`, `dtype`, `trainable`.

    Call arguments:
      inputs: Tensor of shape `(batch, steps, ...)`.
      training: Passed to the layer, if it takes it.
      mask: Booleans of shape `(batch, steps)`, passed to the layer, if it takes it.

    Output shape:
      `(batch, steps, ...)`.

    Numerics:
      no step                   a result without a step; Keras' layer raises an error
      unknown number of steps   all steps at once, as one batch

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> print(layers.TimeDistributed(layers.Dense(4))(tf.zeros([2, 0, 3])).shape)
      (2, 0, 4)
    """

    def call(self, inputs: tf.Tensor, training: Any = None, mask: Any = None) -> Any:
        """Returns the output of the layer for each step."""
        if inputs.shape[1]:
            return super().call(inputs, training=training, mask=mask)
        lead = tf.shape(inputs)[:2]
        options = {"training": training, "mask": None}
        if mask is not None:
            options["mask"] = tf.reshape(mask, tf.concat([[-1], tf.shape(mask)[2:]], 0))
        known = inspect.signature(self.layer.call).parameters
        rows = tf.concat([[lead[0] * lead[1]], tf.shape(inputs)[2:]], 0)
        found = self.layer.call(
            tf.ensure_shape(tf.reshape(inputs, rows), [None, *inputs.shape[2:]]),
            **{name: value for name, value in options.items() if name in known},
        )
        steps = tf.reshape(found, tf.concat([lead, tf.shape(found)[1:]], 0))
        return tf.ensure_shape(steps, [*inputs.shape[:2], *found.shape[1:]])
