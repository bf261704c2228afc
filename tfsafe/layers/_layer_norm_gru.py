"""GRU with layer normalisation, and recurrent dropout without memory loss."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe.layers._recurrent import NormalizedCell, NormalizedRNN
from tfsafe.ops._layer_norm import layer_norm


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormGRUCell(NormalizedCell, keras.layers.GRUCell):
    """One step of a GRU."""

    gates = 3
    bias_shape = (2,)
    fixed = {"reset_after": True}
    instead = {"reset_after": ": the reset gate acts after the matrix product."}
    # The reset gate acts on one of the two products.
    is_joint = False
    keras_class = keras.layers.GRUCell
    neutral = {}

    def _norm_shapes(self) -> dict[str, tuple[int, ...]]:
        if self.fused:
            return dict.fromkeys(("input", "recurrent"), (self.gates * self.units,))
        return {"gate": (2, self.units), "candidate": (self.units,)}

    def _offset(self) -> tf.Tensor | None:
        return None if self.bias is None else self._exact(self.bias)[0]

    def step_weights(self) -> list[tf.Tensor]:
        weights = self._norms(*(["recurrent"] if self.fused else self._norm_shapes()))
        return weights if self.bias is None else [*weights, self._exact(self.bias)[1]]

    def advance(
        self,
        gates: Sequence[tf.Tensor],
        states: Sequence[tf.Tensor],
        dropped: tf.Tensor | None,
        weights: Sequence[tf.Tensor],
    ) -> tuple[tf.Tensor]:
        """Returns the output after a step, which is the only state."""
        projected, recurrent = gates
        per_gate = self.layer_norm and not self.fused
        if self.fused:
            recurrent = layer_norm(recurrent, weights[0], weights[1], self.epsilon)
        if self.bias is not None:
            recurrent += weights[-1]
        both = 2 * self.units
        pair = tf.reshape(
            projected[:, :both] + recurrent[:, :both], [-1, 2, self.units]
        )
        if per_gate:
            pair = layer_norm(pair, weights[0], weights[1], self.epsilon)
        update, reset = tf.unstack(self.recurrent_activation(pair), axis=1)
        candidate = projected[:, both:] + reset * recurrent[:, both:]
        if per_gate:
            candidate = layer_norm(candidate, weights[2], weights[3], self.epsilon)
        candidate = self.activation(candidate)
        if dropped is not None:
            candidate *= dropped
        return (update * states[0] + (1 - update) * candidate,)

    def take_bias(self, bias: tf.Tensor) -> None:
        """Takes over the bias of a Keras GRU, of shape `(2, 3 * units)`."""
        if self.bias is not None:
            self.bias.assign(bias)
        elif self.layer_norm:
            shift = tf.reshape(tf.reduce_sum(bias, 0), [self.gates, self.units])
            self.gate_shift.assign(shift[:2])
            self.candidate_shift.assign(shift[2])


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormGRU(NormalizedRNN):
    """GRU over sequences."""

    cell_class = LayerNormGRUCell
    keras_class = keras.layers.GRU
