"""Runs a cell with layer normalization over time, for the LSTM and the GRU."""

from typing import TYPE_CHECKING, Any, ClassVar

import keras
import tensorflow as tf

from tfsafe.layers.recurrent import scan
from tfsafe.layers.recurrent.cells import FromKeras

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import AnyCellOptions

NORMALIZED = """
    In a training step in a graph on a CPU, XLA compiles the loop alone if the number of
    steps is known and at least 32, and if the activations are those of Keras. Set
    `supports_jit = False` on the layer to keep TensorFlow's loop.

    Call arguments:
      sequences: Tensor of shape `(batch, steps, features)`.
      initial_state: The first output, for an LSTM a list of it and the first state.
      mask: Booleans of shape `(batch, steps)`, True where a step counts.
      training: Whether to drop.

    Output shape:
      `(batch, units)`, with `return_sequences` `(batch, steps, units)`; with
      `return_state` a list, the states after the output.

    Raises:
      TypeError: As the cell does.
      ValueError: As the cell does.

    Numerics:
      zero frames      any number of all-zero steps leaves the gradients bounded, where
                       the plain formula multiplies them by 1 / sqrt(epsilon) each time
      masked step      its inputs do not matter, NaN included; gradient 0
      no gradient in   a sample whose incoming gradients are 0 gives none to any
                       weight, NaN in it or not
      mixed precision  half precision in the two products, float32 elsewhere; the
                       outputs are rounded once
    """


# The first two are those of the cell, too.
_OF_THE_LAYER = ("dtype", "trainable", "name", "activity_regularizer")


class NormalizedRNN(FromKeras, keras.layers.RNN):
    """A layer around such a cell, with the loop and the gradient of `scan`."""

    cell_class: ClassVar[Any]

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        *,
        return_sequences: bool = False,
        return_state: bool = False,
        go_backwards: bool = False,
        stateful: bool = False,
        unroll: bool = False,
        zero_output_for_mask: bool = False,
        **kwargs: "Unpack[AnyCellOptions]",
    ):
        of_layer = {k: v for k, v in kwargs.items() if k in _OF_THE_LAYER}
        of_cell = {k: v for k, v in kwargs.items() if k not in _OF_THE_LAYER[2:]}
        super().__init__(
            self.cell_class(
                units, activation, recurrent_activation, use_bias, **of_cell
            ),
            return_sequences=return_sequences,
            return_state=return_state,
            go_backwards=go_backwards,
            stateful=stateful,
            unroll=unroll,
            zero_output_for_mask=zero_output_for_mask,
            **of_layer,
        )

    def build(self, sequences_shape: Any, initial_state_shape: Any = None) -> None:
        """Makes the weights of the cell.

        Args:
          sequences_shape: Shape of the sequences, `(batch, steps, features)`.
          initial_state_shape: Shapes of the first states, which do not matter.

        Raises:
          ValueError: If the axis of steps is missing.
        """
        if len(sequences_shape) != 3:
            raise ValueError(
                "`sequences` must have the shape (batch, steps, features). Received: "
                f"shape {tuple(sequences_shape)}. Add the axis that is missing, for "
                "example `x[..., tf.newaxis]` if there is one feature."
            )
        super().build(sequences_shape, initial_state_shape)
        self.input_spec = keras.layers.InputSpec(ndim=3)

    def inner_loop(
        self,
        sequences: tf.Tensor,
        initial_state: Any,
        mask: Any,
        training: bool = False,
    ) -> tuple[tf.Tensor, tf.Tensor, list[tf.Tensor]]:
        """Returns the last output, all outputs and the last states."""
        if self.unroll:
            return super().inner_loop(sequences, initial_state, mask, training)
        cell = self.cell
        if training and cell.dropout > 0:
            sequences *= cell.get_dropout_mask(sequences[:, 0])[:, tf.newaxis]
        steps = self._in_order(sequences)
        keep = None
        if mask is not None:
            mask = tf.nest.flatten(mask)[0]
            keep = self._in_order(tf.cast(mask, tf.bool)[..., tf.newaxis])
        states = cell.exact_states(initial_state, "initial_state")
        dropped = None
        if training and cell.recurrent_dropout > 0:
            dropped = cell.candidate_mask(states[0], [tf.shape(steps)[0]])
        # Once for each row, so that no step has to sum its gradients over the batch.
        batch = tf.shape(steps)[1]
        weights = [
            tf.broadcast_to(weight, tf.concat([[batch], tf.shape(weight)], 0))
            for weight in cell.step_weights()
        ]
        outputs, last = scan.scan(
            cell,
            cell.project(steps),
            cell.step_kernel,
            states,
            weights,
            dropped=dropped,
            keep=keep,
            # Not for inference, where the lengths vary and functions are exported.
            may_compile=bool(training) and self.supports_jit and cell.may_compile,
        )
        if keep is not None:
            outputs = tf.where(self._shown(keep), outputs, tf.zeros([], outputs.dtype))
        return outputs[-1], tf.transpose(outputs, [1, 0, 2]), list(last)

    def _in_order(self, sequences: tf.Tensor) -> tf.Tensor:
        """Puts the steps first, in the order in which they are taken."""
        steps = tf.transpose(sequences, [1, 0, 2])
        return tf.reverse(steps, [0]) if self.go_backwards else steps

    def _shown(self, keep: tf.Tensor) -> tf.Tensor:
        # As in Keras, the output at a masked step is the last one before it, or 0.
        if self.zero_output_for_mask:
            return keep
        return tf.cumsum(tf.cast(keep, tf.int32)) > 0

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        config = super().get_config()
        del config["cell"]
        return {**self.cell.get_config(), **config}

    @classmethod
    def from_config(cls, config: dict[str, Any], custom_objects: Any = None) -> Any:
        """Makes the layer that `get_config` describes."""
        with keras.saving.custom_object_scope(custom_objects or {}):
            return cls(**config)
