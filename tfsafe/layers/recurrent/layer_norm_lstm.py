"""LSTM with layer normalization, and recurrent dropout without memory loss."""

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import keras
import tensorflow as tf

from tfsafe import _args
from tfsafe.layers.options import member_of_family
from tfsafe.layers.recurrent.cells import NormalizedCell, keep, pull_back, value_of
from tfsafe.layers.recurrent.layer import NORMALIZED, NormalizedRNN
from tfsafe.ops.kernels.statistics.layer_norm import (
    pull_back as norm_gradients,
    standardize,
)

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from tfsafe.layers.options import CellOptions

_OUTPUT, _STORED = "output", "stored"


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormLSTMCell(NormalizedCell, keras.layers.LSTMCell):
    """One step of an LSTM with layer normalization and dropout without memory loss.

    Like `keras.layers.LSTMCell`, for `keras.layers.RNN` and for stacks of cells;
    `LayerNormLSTM` is faster. With `x` the input, `h` and `c` the states and `LN` layer
    normalization with a gain and a shift of its own for each place:

        [i, f, g, o] = x @ kernel + h @ recurrent_kernel
        i, f, o = sigmoid(LN(i)), sigmoid(LN(f) + forget_bias), sigmoid(LN(o))
        g = dropout(tanh(LN(g)))
        c = f * c + i * g
        h = o * tanh(LN(c))

    With `fused`, the gates are not normalized, but the two products are:

        [i, f, g, o] = LN(x @ kernel) + LN(h @ recurrent_kernel) + bias

    Args:
      units: Size of the output, positive.
      activation: Of the candidate and of the normalized state; what
        `keras.activations.get` takes.
      recurrent_activation: Of the gates.
      use_bias: Whether there is a bias without `layer_norm`, or with `fused`. The shift
        of a gate that is normalized by itself is its bias.
      forget_bias: Added to the forget gate, 1 as a rule.
      normalize_state: `"output"` to normalize the state only on its way to the output
        (Ba et al.), `"stored"` to keep the normalized state (the cell of
        `tf.contrib` and that of TensorFlow Addons).
      layer_norm: Whether to normalize at all.
      fused: Whether to normalize the two products, each over all gates at once, in the
        place of the gates: the form of TensorFlow Addons.
      epsilon: Added to the variances.
      norm_gain_initializer: Of the gains.
      norm_shift_initializer: Of the shifts.
      recurrent_dropout: Fraction of the candidate to drop in training, from 0 to
        below 1. Unlike Keras' own, it does not touch the memory.
      recurrent_dropout_mask: `"step"` to draw again at every step, `"sequence"` to
        keep one mask for all steps of a sequence.
      **kwargs: What `keras.layers.LSTMCell` takes: `dropout` of the inputs, `seed`,
        initializers, regularizers and constraints of the kernels and the bias, `name`,
        `dtype`.

    Call arguments:
      inputs: Tensor of shape `(batch, features)`.
      states: The last output and the state, each of shape `(batch, units)`.
      training: Whether to drop.

    Output shape:
      `(batch, units)`, and the list of the new states.

    Raises:
      TypeError: If a number is none, or for an argument of the Keras cell that has no
        meaning here.
      ValueError: If a number is out of range, or an option is not one of those named.

    Numerics:
      no spread        where all elements of a normalized row are equal, as after
                       all-zero frames, the value is the shift and the gradient 0
      no gradient in   a row of the batch whose incoming gradients are 0 gives none to
                       any weight, NaN in it or not: padding cannot leak
      mixed precision  half precision in the two products, float32 elsewhere

    Examples:
      >>> import keras
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> rnn = keras.layers.RNN([layers.LayerNormLSTMCell(4) for _ in range(2)])
      >>> print(rnn(tf.zeros([2, 3, 5])).shape)
      (2, 4)

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
      Semeniuta, Severyn and Barth, "Recurrent Dropout without Memory Loss", COLING
      2016, arXiv:1603.05118.
    """

    gates = centred_gates = 4
    bias_shape = ()
    fixed: ClassVar = {"unit_forget_bias": False}
    instead: ClassVar = {"unit_forget_bias": ", and set `forget_bias`."}
    keras_class = keras.layers.LSTMCell
    # The bias of a Keras LSTM has it in itself.
    neutral: ClassVar = {"forget_bias": 0.0}

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        *,
        forget_bias: float = 1.0,
        normalize_state: str = _OUTPUT,
        **kwargs: "Unpack[CellOptions]",
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
        return self.exact(tf.repeat(offset[:, tf.newaxis], self.units, 1))

    def _offset(self) -> tf.Tensor | None:
        if self.is_per_gate:
            return None
        offset = tf.reshape(self._forget_offset(), [-1])
        return offset if self.bias is None else offset + self.exact(self.bias)

    def step_weights(self) -> list[tf.Tensor]:
        """Returns what `advance` takes as weights."""
        weights = self._norms("recurrent" if self.fused else "gate", "state")
        if self.is_per_gate:
            weights[1] += self._forget_offset()
        return weights

    def advance(
        self,
        gates: Sequence[tf.Tensor],
        states: Sequence[tf.Tensor],
        dropped: tf.Tensor | None,
        weights: Sequence[tf.Tensor],
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Returns the output and the cell state after a step; `scan` has the rest."""
        total, norms = gates[-1], []
        if self.layer_norm:
            total = total if self.fused else self._by_gate(total)
            norms = [*standardize(total, self.epsilon, is_centred=True)]
            total = norms[0] * weights[0] + weights[1]
        if self.fused:
            total += gates[0]
        parts = tf.unstack(self._by_gate(total), axis=1)
        both = list(map(keep, self._activations, parts))
        (i, f, g, o), kept = zip(*both, strict=True)
        state = f * states[1] + i * (g if dropped is None else g * dropped)
        inner = state
        if self.layer_norm:
            norms += standardize(state, self.epsilon)
            inner = norms[2] * weights[2] + weights[3]
        factor, last = keep(self.activation, inner)
        stored = inner if self.normalize_state == _STORED else state
        return [o * factor, stored], [*kept, last, *norms]

    def pull_back(
        self,
        kept: Sequence[tf.Tensor],
        states: Sequence[tf.Tensor],
        dropped: tf.Tensor | None,
        weights: Sequence[tf.Tensor],
        upstream: Sequence[tf.Tensor],
        live: tf.Tensor,
    ) -> tuple[list[tf.Tensor], list[tf.Tensor | None], list[tf.Tensor]]:
        """Returns the gradients of `advance`; `scan` has the rest."""
        functions = (*self._activations, self.activation)
        (*parts, last), norms = kept[:5], kept[5:]
        i, f, g, o, factor = map(value_of, functions, kept)
        d_output, d_state = upstream
        d_inner = pull_back(self.activation, last, d_output * o)
        d_inner = tf.math.multiply_no_nan(d_inner, live)
        in_weights: list[tf.Tensor] = []
        if self.normalize_state == _STORED:
            d_inner, d_state = d_inner + d_state, tf.zeros_like(d_state)
        if self.layer_norm:
            d_inner, *in_weights = norm_gradients(norms[2:], weights[2], d_inner)
        d_state += d_inner
        d_g, candidate = d_state * i, g
        if dropped is not None:
            d_g, candidate = d_g * dropped, g * dropped
        incoming = (d_state * candidate, d_state * states[1], d_g, d_output * factor)
        d_total = tf.stack(list(map(pull_back, self._activations, parts, incoming)), 1)
        d_total = tf.math.multiply_no_nan(d_total, live[..., tf.newaxis])
        width = [-1, self.gates * self.units]
        if self.fused or not self.layer_norm:
            d_total = tf.reshape(d_total, width)
        d_gates = [d_total] if self.fused else []
        if self.layer_norm:
            d_total, *more = norm_gradients(
                norms[:2], weights[0], d_total, is_centred=True
            )
            in_weights = [*more, *in_weights]
        d_gates.append(tf.reshape(d_total, width))
        return d_gates, [None, tf.math.multiply_no_nan(f, d_state)], in_weights

    @property
    def _activations(self) -> tuple[Any, ...]:
        gate = self.recurrent_activation
        return gate, gate, self.activation, gate

    def _by_gate(self, x: tf.Tensor) -> tf.Tensor:
        return tf.reshape(x, [-1, self.gates, self.units])

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


@member_of_family(NORMALIZED)
class LayerNormLSTM(NormalizedRNN):
    """LSTM over sequences, with layer normalization.

    The equations and options are those of `LayerNormLSTMCell`, the layer those of
    `keras.layers.LSTM`. It gives what `keras.layers.RNN(LayerNormLSTMCell(...))`
    gives, faster: the gradient of the loop is written out, and all of dropout's masks
    are drawn before the loop. cuDNN has no such layer.

    `LayerNormLSTM.from_keras(layer)` takes over the options and the weights of a
    `keras.layers.LSTM`; with `layer_norm=False` it computes the same function.

    Args:
      units: Size of the output, positive.
      activation: As for `LayerNormLSTMCell`, and the next two.
      recurrent_activation: Of the gates.
      use_bias: Whether there is a bias.
      return_sequences: Whether to return the outputs of all steps, not only the last.
      return_state: Whether to return the last states as well.
      go_backwards: Whether to take the steps from the last to the first.
      stateful: Whether a batch starts with the last states of the batch before.
      unroll: Whether Keras' loop is used, unrolled, for a handful of steps.
      zero_output_for_mask: Whether the output at a masked step is 0, not the one
        before.
      name: Name of the layer.
      activity_regularizer: Regularizer of the output.
      **kwargs: What else `LayerNormLSTMCell` takes.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> lstm = layers.LayerNormLSTM(4, return_sequences=True, recurrent_dropout=0.25)
      >>> print(lstm(tf.zeros([2, 3, 5])).shape)
      (2, 3, 4)

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
      Semeniuta, Severyn and Barth, "Recurrent Dropout without Memory Loss", COLING
      2016, arXiv:1603.05118.
    """

    cell_class = LayerNormLSTMCell
    keras_class = keras.layers.LSTM
