"""LSTM with layer normalisation, and recurrent dropout without memory loss."""

from collections.abc import Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _args
from tfsafe.layers._recurrent import NormalizedCell, NormalizedRNN
from tfsafe.ops._layer_norm import layer_norm

_OUTPUT, _STORED = "output", "stored"


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormLSTMCell(NormalizedCell, keras.layers.LSTMCell):
    """One step of an LSTM."""

    gates = 4
    bias_shape = ()
    fixed = {"unit_forget_bias": False}
    instead = {"unit_forget_bias": ", and set `forget_bias`."}
    keras_class = keras.layers.LSTMCell
    # The bias of a Keras LSTM has it in itself.
    neutral = {"forget_bias": 0.0}

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        *,
        forget_bias: float = 1.0,
        normalize_state: str = _OUTPUT,
        **kwargs: Any,
    ):
        super().__init__(units, activation, recurrent_activation, use_bias, **kwargs)
        self.forget_bias = _args.number(forget_bias, "forget_bias", tf.float32)
        self.normalize_state = _args.one_of(
            normalize_state, (_OUTPUT, _STORED), "normalize_state"
        )

    @property
    def is_joint(self) -> bool:
        """Whether the gates need nothing but the sum of the two products."""
        return not self.fused

    def _norm_shapes(self) -> dict[str, tuple[int, ...]]:
        width, state = self.gates * self.units, {"state": (self.units,)}
        if self.fused:
            return {"input": (width,), "recurrent": (width,), **state}
        return {"gate": (self.gates, self.units), **state}

    def _forget_offset(self) -> tf.Tensor:
        offset = tf.constant([0.0, self.forget_bias, 0.0, 0.0])
        return self._exact(tf.repeat(offset[:, tf.newaxis], self.units, 1))

    def _offset(self) -> tf.Tensor | None:
        if self.layer_norm and not self.fused:
            return None
        offset = tf.reshape(self._forget_offset(), [-1])
        return offset if self.bias is None else offset + self._exact(self.bias)

    def step_weights(self) -> list[tf.Tensor]:
        weights = self._norms("recurrent" if self.fused else "gate", "state")
        if self.layer_norm and not self.fused:
            weights[1] += self._forget_offset()
        return weights

    def advance(
        self,
        gates: Sequence[tf.Tensor],
        states: Sequence[tf.Tensor],
        dropped: tf.Tensor | None,
        weights: Sequence[tf.Tensor],
    ) -> tuple[tf.Tensor, tf.Tensor]:
        """Returns the output and the cell state after a step."""
        total = gates[0]
        if self.fused:
            total += layer_norm(gates[1], weights[0], weights[1], self.epsilon)
        total = tf.reshape(total, [-1, self.gates, self.units])
        if self.layer_norm and not self.fused:
            total = layer_norm(total, weights[0], weights[1], self.epsilon)
        i, f, g, o = tf.unstack(total, axis=1)
        candidate = self.activation(g)
        if dropped is not None:
            candidate *= dropped
        state = self.recurrent_activation(f) * states[1]
        state += self.recurrent_activation(i) * candidate
        inner = state
        if self.layer_norm:
            inner = layer_norm(state, weights[2], weights[3], self.epsilon)
        output = self.recurrent_activation(o) * self.activation(inner)
        return output, inner if self.normalize_state == _STORED else state

    def take_bias(self, bias: tf.Tensor) -> None:
        """Takes over the bias of a Keras LSTM, of shape `(4 * units,)`."""
        if self.bias is not None:
            self.bias.assign(bias)
        elif self.layer_norm:
            self.gate_shift.assign(tf.reshape(bias, [self.gates, self.units]))

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        return {
            **super().get_config(),
            "forget_bias": self.forget_bias,
            "normalize_state": self.normalize_state,
        }


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormLSTM(NormalizedRNN):
    """LSTM over sequences."""

    cell_class = LayerNormLSTMCell
    keras_class = keras.layers.LSTM
