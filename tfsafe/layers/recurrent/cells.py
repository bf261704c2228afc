"""Weights, masks and options of the cells with layer normalization."""

import difflib
import inspect
import math
import warnings
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any, ClassVar

import keras
import tensorflow as tf

from tfsafe import _args
from tfsafe.layers.options import KerasCellOptions
from tfsafe.layers.recurrent import scan
from tfsafe.ops.kernels.statistics.layer_norm import centred_columns, layer_norm

if TYPE_CHECKING:
    from typing_extensions import Unpack

from collections.abc import Callable

# For these the loop keeps the value; else the argument, from which it starts again.
_FROM_VALUE: dict[Any, Callable[[tf.Tensor, tf.Tensor], tf.Tensor]] = {
    keras.activations.tanh: lambda y, upstream: tf.raw_ops.TanhGrad(y=y, dy=upstream),
    keras.activations.sigmoid: lambda y, upstream: tf.raw_ops.SigmoidGrad(
        y=y, dy=upstream
    ),
    keras.activations.linear: lambda _, upstream: upstream,
}


def is_of_keras(function: Any) -> bool:
    """Returns whether a function is one of `keras.activations`."""
    return any(each is function for each in vars(keras.activations).values())


def keep(function: Any, x: tf.Tensor) -> tuple[tf.Tensor, tf.Tensor]:
    """Returns `function(x)`, and what the two functions below take."""
    value = function(x)
    return value, value if function in _FROM_VALUE else x


def value_of(function: Any, kept: tf.Tensor) -> tf.Tensor:
    """Returns the value from what is kept."""
    return kept if function in _FROM_VALUE else function(kept)


def pull_back(function: Any, kept: tf.Tensor, upstream: tf.Tensor) -> tf.Tensor:
    """Returns the gradient in the argument of the activation."""
    if function in _FROM_VALUE:
        return _FROM_VALUE[function](kept, upstream)
    with tf.GradientTape(watch_accessed_variables=False) as tape:
        tape.watch(kept)
        value = function(kept)
    zero = tf.UnconnectedGradients.ZERO
    return tape.gradient(value, kept, upstream, unconnected_gradients=zero)


_STEP, _SEQUENCE = "step", "sequence"

# Mixin; the Keras cell comes next in the MRO.
_KerasCell: Any = object


class FromKeras:
    """Takes over a Keras cell, or a Keras layer with its cell."""

    # What is taken over.
    keras_class: ClassVar[Any]

    @classmethod
    def from_keras(cls, source: Any, **options: Any) -> Any:
        """Makes one with the options and the weights of its counterpart in Keras.

        Args:
          source: The Keras cell or layer of this kind.
          **options: Arguments of this class, which replace those of `source`.

        Returns:
          The new cell or layer; built if `source` is. If it is not, a warning says
          that its weights are new ones.

        Raises:
          TypeError: If `source` is not of this kind.
          ValueError: If it has `reset_after=False`.
        """
        new: Any = cls(**{**cls._converted(source), **options})
        if not source.built:
            warnings.warn(
                f"`from_keras` takes over the options of {source.name!r} alone: it is "
                "not built and has no weights, so that the new layer draws its own. To "
                "take over weights, call the Keras layer on data, or load them, first.",
                stacklevel=2,
            )
            return new
        # A layer has its weights in its cell.
        theirs, ours = (getattr(each, "cell", each) for each in (source, new))
        features = theirs.kernel.shape[0]
        if ours is new:
            new.build((None, features))
        else:
            is_known = new.stateful and source.states
            batch = source.states[0].shape[0] if is_known else None
            new.build((batch, None, features))
        ours.take_weights(theirs)
        return new

    @classmethod
    def _converted(cls, source: Any) -> dict[str, Any]:
        """Returns the options of a Keras cell or layer as arguments of this kind."""
        if not isinstance(source, cls.keras_class):
            raise TypeError(
                f"`from_keras` takes a keras.layers.{cls.keras_class.__name__} here. "
                f"Received: {source!r}."
            )
        config = source.get_config()
        if not config.get("reset_after", True):
            raise ValueError(
                "`from_keras` takes a GRU with reset_after=True, Keras' default; the "
                "weights of another one mean something else. Received: "
                f"reset_after=False in {source!r}."
            )
        cell_class: Any = getattr(cls, "cell_class", cls)
        theirs = {"implementation", "use_cudnn", *cell_class.fixed}
        kept = {key: value for key, value in config.items() if key not in theirs}
        return {**kept, **cell_class.neutral}


class NormalizedCell(FromKeras, _KerasCell):
    """Weights, masks and call of a cell; a mixin before the Keras cell of that kind.

    The Keras cell has the common options, their checks and their config. A subclass
    defines its gates and its step.
    """

    gates: ClassVar[int]
    # How many of them are sums of two products, which centred kernels centre.
    centred_gates: ClassVar[int]
    bias_shape: ClassVar[tuple[int, ...]]
    # Options of the Keras cell that have one value here, and what to do about them.
    fixed: ClassVar[dict[str, Any]]
    instead: ClassVar[dict[str, str]]
    # The options with which the weights of the Keras cell mean the same here.
    neutral: ClassVar[dict[str, Any]]

    def __init__(
        self,
        units: int,
        activation: Any = "tanh",
        recurrent_activation: Any = "sigmoid",
        use_bias: bool = True,
        *,
        layer_norm: bool = True,
        fused: bool = False,
        epsilon: float = 1e-5,
        norm_gain_initializer: Any = "ones",
        norm_shift_initializer: Any = "zeros",
        recurrent_dropout: float = 0.0,
        recurrent_dropout_mask: str = _STEP,
        **kwargs: "Unpack[KerasCellOptions]",
    ):
        self._refuse(dict(kwargs))
        _check_units(units)
        _check_rate(kwargs.get("dropout", 0.0), "dropout")
        _check_rate(recurrent_dropout, "recurrent_dropout")
        super().__init__(
            units, activation, recurrent_activation, use_bias, **self.fixed, **kwargs
        )
        # Kept from the Keras cell, where the rate means another kind of dropout.
        self.recurrent_dropout = recurrent_dropout
        self.recurrent_dropout_mask = _args.one_of(
            recurrent_dropout_mask, (_STEP, _SEQUENCE), "recurrent_dropout_mask"
        )
        self.layer_norm = _args.one_of(layer_norm, (False, True), "layer_norm")
        self.fused = _args.one_of(fused, (False, True), "fused")
        if fused and not layer_norm:
            raise ValueError(
                "`fused` is a form of layer normalization. Received: fused=True, "
                "layer_norm=False. Omit one of them."
            )
        self.epsilon = _args.number(epsilon, "epsilon", tf.float32)
        if not 0 < self.epsilon < math.inf:
            raise ValueError(
                "`epsilon` must be positive and finite. Received: "
                f"epsilon={epsilon!r}. Usual values lie between 1e-12 and 1e-3."
            )
        self.norm_gain_initializer = keras.initializers.get(norm_gain_initializer)
        self.norm_shift_initializer = keras.initializers.get(norm_shift_initializer)

    def _refuse(self, kwargs: dict[str, Any]) -> None:
        for name, value in kwargs.items():
            if advice := self._advice(name):
                raise TypeError(
                    f"`{name}` is not an argument of {type(self).__name__}. Received: "
                    f"{name}={value!r}. {advice}"
                )

    def _advice(self, name: str) -> str:
        """Says what to do about an argument; empty for one that Keras may take."""
        if name in ("implementation", *self.fixed):
            return "Leave it out" + self.instead.get(name, ".")
        if name in KerasCellOptions.__annotations__:
            return ""
        known = inspect.signature(type(self)).parameters
        similar = difflib.get_close_matches(name, known, 1)
        return f"Did you mean `{similar[0]}`?" if similar else ""

    @property
    def _has_bias(self) -> bool:
        # The shift of a normalized gate is its bias.
        return self.use_bias and not self.is_per_gate

    def build(self, input_shape: Any) -> None:
        """Makes the weights."""
        width = self.gates * self.units
        self.kernel = self.add_weight(
            shape=(input_shape[-1], width),
            name="kernel",
            initializer=self.kernel_initializer,
            regularizer=self.kernel_regularizer,
            constraint=self.kernel_constraint,
        )
        self.recurrent_kernel = self.add_weight(
            shape=(self.units, width),
            name="recurrent_kernel",
            initializer=self.recurrent_initializer,
            regularizer=self.recurrent_regularizer,
            constraint=self.recurrent_constraint,
        )
        self.bias = None
        if self._has_bias:
            self.bias = self.add_weight(
                shape=(*self.bias_shape, width),
                name="bias",
                initializer=self.bias_initializer,
                regularizer=self.bias_regularizer,
                constraint=self.bias_constraint,
                autocast=False,
            )
        for place, shape in (self._norm_shapes() if self.layer_norm else {}).items():
            for part, initializer in (
                ("gain", self.norm_gain_initializer),
                ("shift", self.norm_shift_initializer),
            ):
                name = f"{place}_{part}"
                weight = self.add_weight(
                    shape=shape, name=name, initializer=initializer, autocast=False
                )
                setattr(self, name, weight)
        self.built = True

    def _norms(self, *places: str) -> list[tf.Tensor]:
        """Returns gain and shift of each place, or nothing without normalization."""
        names = [f"{place}_{part}" for place in places for part in ("gain", "shift")]
        return [self.exact(getattr(self, n)) for n in names if self.layer_norm]

    def project(self, inputs: tf.Tensor) -> tf.Tensor:
        """Returns what the inputs of any number of steps bring to the gates."""
        kernel = self._centred(self.kernel, self.is_per_gate)
        projected = self.exact(scan.project(inputs, kernel))
        if self.fused:
            projected = layer_norm(projected, *self._norms("input"), self.epsilon)
        offset = self._offset()
        return projected if offset is None else projected + offset

    @property
    def step_kernel(self) -> tf.Tensor:
        """The recurrent kernel, for `advance`."""
        return self._centred(self.recurrent_kernel, self.layer_norm)

    @property
    def is_per_gate(self) -> bool:
        """Whether each gate is normalized by itself."""
        return self.layer_norm and not self.fused

    def _centred(self, kernel: Any, is_normalized: bool) -> tf.Tensor:
        kernel = tf.convert_to_tensor(kernel)
        if not is_normalized:
            return kernel
        width = self.gates * self.units
        pieces = (1, width) if self.fused else (self.centred_gates, self.units)
        return tf.cast(centred_columns(self.exact(kernel), *pieces), kernel.dtype)

    def call(self, inputs: tf.Tensor, states: Any, training: bool = False) -> Any:
        """Runs one step, and returns the output and the new states."""
        is_nested = isinstance(states, list | tuple)
        before = self.exact_states(states if is_nested else [states], "states")
        dropped = None
        if training and self.dropout > 0:
            inputs *= self.get_dropout_mask(inputs)
        if training and self.recurrent_dropout > 0:
            dropped = self.candidate_mask(before[0])
        gates = [
            self.project(inputs),
            scan.multiply(before[0], self.step_kernel),
        ]
        after = scan.one_step(
            self,
            [gates[0] + gates[1]] if self.is_joint else gates,
            before,
            dropped,
            [weight[tf.newaxis] for weight in self.step_weights()],
        )
        new = [tf.cast(x, self.compute_dtype) for x in after]
        return new[0], new if is_nested else new[0]

    def exact_states(self, states: Sequence[Any], name: str) -> tuple[tf.Tensor, ...]:
        """Returns the states in the dtype of the sums; refuses a wrong number."""
        expected = len(tf.nest.flatten(self.state_size))
        if len(states) != expected:
            raise ValueError(
                f"`{name}` must be a list of {expected} tensor"
                f"{'s' if expected > 1 else ''} of shape (batch, "
                f"{self.units}). Received: {len(states)}. Begin with "
                "`get_initial_state(batch_size)`."
            )
        return tuple(self.exact(x) for x in states)

    def candidate_mask(
        self, state: tf.Tensor, steps: Sequence[tf.Tensor | int] = ()
    ) -> tf.Tensor:
        """Draws dropout's factors for the candidate.

        Args:
          state: A state, for the shape of the factors and their dtype.
          steps: The number of steps as a sequence of one, for all steps at once.

        Returns:
          Factors of shape `(*steps, batch, units)`, or of shape `(batch, units)`
          where they are the same for the whole sequence.
        """
        if self.recurrent_dropout_mask == _SEQUENCE:
            return self.exact(self.get_recurrent_dropout_mask(state))
        return tf.nn.experimental.stateless_dropout(
            tf.ones(tf.concat([[*steps], tf.shape(state)], 0), state.dtype),
            self.recurrent_dropout,
            tf.cast(self.seed_generator.next(), tf.int32),
            # What TensorFlow chooses by itself takes 100 times as long under XLA on a
            # CPU.
            rng_alg="philox",
        )

    def get_recurrent_dropout_mask(self, step_input: tf.Tensor) -> Any:
        """Returns the factors for the whole sequence, or None if each step draws."""
        if self.recurrent_dropout_mask == _STEP:
            return None
        return super().get_recurrent_dropout_mask(step_input)

    def get_config(self) -> dict[str, Any]:
        """Returns what `from_config` needs."""
        config = super().get_config()
        for name in self.fixed:
            config.pop(name)
        serialize = keras.initializers.serialize
        return {
            **config,
            "layer_norm": self.layer_norm,
            "fused": self.fused,
            "epsilon": self.epsilon,
            "norm_gain_initializer": serialize(self.norm_gain_initializer),
            "norm_shift_initializer": serialize(self.norm_shift_initializer),
            "recurrent_dropout_mask": self.recurrent_dropout_mask,
        }

    def take_weights(self, cell: Any) -> None:
        """Takes over the weights of a Keras cell of this kind."""
        self.kernel.assign(cell.kernel)
        self.recurrent_kernel.assign(cell.recurrent_kernel)
        if cell.bias is not None:
            self.take_bias(tf.convert_to_tensor(cell.bias))

    @property
    def may_compile(self) -> bool:
        """Whether XLA knows all operations: an activation by hand may have others."""
        used = self.activation, self.recurrent_activation
        return self.supports_jit and all(map(is_of_keras, used))

    def exact(self, x: Any) -> tf.Tensor:
        """Casts to the dtype of everything but the matrix products."""
        half = self.compute_dtype in {"float16", "bfloat16"}
        return tf.cast(x, tf.float32 if half else self.compute_dtype)


def _check_units(units: Any) -> None:
    if not _args.is_integer(units):
        raise TypeError(
            "`units` must be a positive integer, the size of the output. Received: "
            f"units={units!r}."
        )


def _check_rate(rate: Any, name: str) -> None:
    if not 0 <= _args.number(rate, name, tf.float64) < 1:
        raise ValueError(
            f"`{name}` must be at least 0 and below 1, the fraction of units "
            f"to drop. Received: {name}={rate!r}."
        )
