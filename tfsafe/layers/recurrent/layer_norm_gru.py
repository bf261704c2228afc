"""GRU with layer normalization, and recurrent dropout without memory loss."""

from collections.abc import Sequence
from typing import Any, ClassVar

import keras
import tensorflow as tf

from tfsafe.layers.options import member_of_family
from tfsafe.layers.recurrent.cells import NormalizedCell, keep, pull_back, value_of
from tfsafe.layers.recurrent.layer import NORMALIZED, NormalizedRNN
from tfsafe.ops.kernels.statistics.layer_norm import (
    pull_back as norm_gradients,
    standardize,
)


@keras.saving.register_keras_serializable(package="tfsafe")
class LayerNormGRUCell(NormalizedCell, keras.layers.GRUCell):
    """One step of a GRU with layer normalization and dropout without memory loss.

    Like `keras.layers.GRUCell` with `reset_after`, for `keras.layers.RNN` and for
    stacks of cells; `LayerNormGRU` is faster. With `x` the input, `h` the state and
    `LN` layer normalization with a gain and a shift of its own for each place:

        [xz, xr, xg] = x @ kernel
        [hz, hr, hg] = h @ recurrent_kernel
        z, r = sigmoid(LN(xz + hz)), sigmoid(LN(xr + hr))
        g = dropout(tanh(LN(xg + r * hg)))
        h = z * h + (1 - z) * g

    With `fused`, the gates are not normalized, but the two products are, each over all
    gates at once; `bias` has two rows, as in Keras:

        [xz, xr, xg] = LN(x @ kernel) + bias[0]
        [hz, hr, hg] = LN(h @ recurrent_kernel) + bias[1]

    Args:
      units: Size of the output, positive.
      activation: Of the candidate; what `keras.activations.get` takes.
      recurrent_activation: Of the gates.
      use_bias: Whether there is a bias without `layer_norm`, or with `fused`. The shift
        of a gate that is normalized by itself is its bias.
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
      **kwargs: What `keras.layers.GRUCell` takes: `dropout` of the inputs, `seed`,
        initializers, regularizers and constraints of the kernels and the bias, `name`,
        `dtype`.

    Call arguments:
      inputs: Tensor of shape `(batch, features)`.
      states: The last output, of shape `(batch, units)`, or a list of it.
      training: Whether to drop.

    Output shape:
      `(batch, units)`, and the new state.

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
      >>> rnn = keras.layers.RNN([layers.LayerNormGRUCell(4) for _ in range(2)])
      >>> print(rnn(tf.zeros([2, 3, 5])).shape)
      (2, 4)

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
      Semeniuta, Severyn and Barth, "Recurrent Dropout without Memory Loss", COLING
      2016, arXiv:1603.05118.
    """

    gates = 3
    centred_gates = 2
    bias_shape = (2,)
    fixed: ClassVar = {"reset_after": True}
    instead: ClassVar = {
        "reset_after": ": the reset gate acts after the matrix product."
    }
    # The reset gate acts on one of the two products.
    is_joint = False
    keras_class = keras.layers.GRUCell
    neutral: ClassVar[dict[str, Any]] = {}

    def _norm_shapes(self) -> dict[str, tuple[int, ...]]:
        if self.fused:
            return dict.fromkeys(("input", "recurrent"), (self.gates * self.units,))
        return {"gate": (2, self.units), "candidate": (self.units,)}

    def _offset(self) -> tf.Tensor | None:
        return None if self.bias is None else self.exact(self.bias)[0]

    def step_weights(self) -> list[tf.Tensor]:
        """Returns what `advance` takes as weights."""
        weights = self._norms(*(["recurrent"] if self.fused else self._norm_shapes()))
        return weights if self.bias is None else [*weights, self.exact(self.bias)[1]]

    def advance(
        self,
        gates: Sequence[tf.Tensor],
        states: Sequence[tf.Tensor],
        dropped: tf.Tensor | None,
        weights: Sequence[tf.Tensor],
    ) -> tuple[list[tf.Tensor], list[tf.Tensor]]:
        """Returns the output after a step, the only state; `scan` has the rest."""
        (projected, recurrent), norms = gates, []
        if self.fused:
            norms = [*standardize(recurrent, self.epsilon, is_centred=True)]
            recurrent = norms[0] * weights[0] + weights[1]
        if self.bias is not None:
            recurrent += weights[-1]
        both = 2 * self.units
        pair = tf.reshape(
            projected[:, :both] + recurrent[:, :both], [-1, 2, self.units]
        )
        if self.is_per_gate:
            norms = [*standardize(pair, self.epsilon, is_centred=True)]
            pair = norms[0] * weights[0] + weights[1]
        pair, kept_pair = keep(self.recurrent_activation, pair)
        update, reset = tf.unstack(pair, axis=1)
        memory = recurrent[:, both:]
        candidate = projected[:, both:] + reset * memory
        if self.is_per_gate:
            norms += standardize(candidate, self.epsilon)
            candidate = norms[2] * weights[2] + weights[3]
        candidate, kept = keep(self.activation, candidate)
        if dropped is not None:
            candidate *= dropped
        output = update * states[0] + (1 - update) * candidate
        return [output], [kept_pair, memory, kept, *norms]

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
        (kept_pair, memory, last), norms = kept[:3], kept[3:]
        update, reset = tf.unstack(
            value_of(self.recurrent_activation, kept_pair), axis=1
        )
        candidate = value_of(self.activation, last)
        (d_output,) = upstream
        d_candidate = d_output * (1 - update)
        if dropped is not None:
            d_candidate, candidate = d_candidate * dropped, candidate * dropped
        d_candidate = pull_back(self.activation, last, d_candidate)
        d_candidate = tf.math.multiply_no_nan(d_candidate, live)
        in_weights: list[tf.Tensor] = []
        if self.is_per_gate:
            d_candidate, *in_weights = norm_gradients(
                norms[2:], weights[2], d_candidate
            )
        incoming = [d_output * (states[0] - candidate), d_candidate * memory]
        d_pair = pull_back(self.recurrent_activation, kept_pair, tf.stack(incoming, 1))
        d_pair = tf.math.multiply_no_nan(d_pair, live[..., tf.newaxis])
        if self.is_per_gate:
            d_pair, *more = norm_gradients(
                norms[:2], weights[0], d_pair, is_centred=True
            )
            in_weights = [*more, *in_weights]
        d_pair = tf.reshape(d_pair, [-1, 2 * self.units])
        d_memory = tf.math.multiply_no_nan(reset, d_candidate)
        d_projected, d_recurrent = (
            tf.concat([d_pair, x], 1) for x in (d_candidate, d_memory)
        )
        in_bias = [] if self.bias is None else [d_recurrent]
        if self.fused:
            d_recurrent, *in_weights = norm_gradients(
                norms, weights[0], d_recurrent, is_centred=True
            )
        in_state = tf.math.multiply_no_nan(update, d_output)
        return [d_projected, d_recurrent], [in_state], [*in_weights, *in_bias]

    def take_bias(self, bias: tf.Tensor) -> None:
        """Takes over the bias of a Keras GRU, of shape `(2, 3 * units)`."""
        if self.bias is not None:
            self.bias.assign(bias)
        elif self.layer_norm:
            shift = tf.reshape(bias[0] + bias[1], [self.gates, self.units])
            self.gate_shift.assign(shift[:2])
            self.candidate_shift.assign(shift[2])


@member_of_family(NORMALIZED)
class LayerNormGRU(NormalizedRNN):
    """GRU over sequences, with layer normalization.

    The equations and options are those of `LayerNormGRUCell`, the layer those of
    `keras.layers.GRU`. It gives what `keras.layers.RNN(LayerNormGRUCell(...))`
    gives, faster: the gradient of the loop is written out, and all of dropout's masks
    are drawn before the loop. cuDNN has no such layer.

    `LayerNormGRU.from_keras(layer)` takes over the options and the weights of a
    `keras.layers.GRU`; with `layer_norm=False` it computes the same function.

    Args:
      units: Size of the output, positive.
      activation: As for `LayerNormGRUCell`, and the next two.
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
      **kwargs: What else `LayerNormGRUCell` takes.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe import layers
      >>> gru = layers.LayerNormGRU(4, return_sequences=True, recurrent_dropout=0.25)
      >>> print(gru(tf.zeros([2, 3, 5])).shape)
      (2, 3, 4)

    References:
      Ba, Kiros and Hinton, "Layer Normalization", arXiv:1607.06450, 2016.
      Semeniuta, Severyn and Barth, "Recurrent Dropout without Memory Loss", COLING
      2016, arXiv:1603.05118.
    """

    cell_class = LayerNormGRUCell
    keras_class = keras.layers.GRU
