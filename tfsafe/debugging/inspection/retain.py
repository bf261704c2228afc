"""Keeps the gradients of intermediate tensors and of layer outputs, by name."""

import collections
import contextlib
import functools
import warnings
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe import _compat
from tfsafe._patching import Patch
from tfsafe._report.text import listed
from tfsafe.debugging import values

# Number of layer names that an error message lists.
_NAMES = 10


class RetainedGradients(dict[str, Any]):
    """The gradients of a block of `retain_gradients`, by name, in forward order.

    Attributes:
      outputs: The tensors whose gradients they are, under the same names.
    """

    def __init__(self) -> None:
        super().__init__()
        self.outputs: dict[str, tf.Tensor] = {}
        self._calls: collections.Counter[str] = collections.Counter()
        self._graph = _graph()

    def clear(self) -> None:
        """Forgets all gradients and tensors; the names count from 0."""
        super().clear()
        self.outputs.clear()
        self._calls.clear()

    def tap(self, name: str, tensor: Any) -> Any:
        """Returns a tensor whose gradient will be kept, as far as it can be.

        Args:
          name: What to call it; a number is added from the second time on.
          tensor: The tensor. Anything but a floating tensor of the graph in which the
            block began is returned unchanged.
        """
        if not values.is_float(tensor) or _graph_of(tensor) is not self._graph:
            return tensor
        times = self._calls[name]
        self._calls[name] += 1
        key = f"{name}:{times}" if times else name
        self[key] = None

        @tf.custom_gradient
        def tapped(x: tf.Tensor) -> tuple[tf.Tensor, Callable[[Any], Any]]:
            def vjp(upstream: Any) -> Any:
                if _graph_of(upstream) is self._graph:
                    self[key] = upstream
                return upstream

            return tf.identity(x), vjp

        counterpart = tapped(tensor)
        if not tf.executing_eagerly():
            _compat.release_gradient(counterpart.op)
        # Keras attached these for the next layers and the loss.
        _compat.set_keras_mask(counterpart, _compat.keras_mask(tensor))
        logits = _compat.keras_logits(tensor)
        _compat.set_keras_logits(counterpart, self.tap(f"{name}/logits", logits))
        self.outputs[key] = counterpart
        return counterpart

    def tap_all(self, name: str, structure: Any) -> Any:
        """Returns a structure of tensors whose gradients will be kept."""
        flat = tf.nest.flatten(structure)
        # A recurrent cell returns one tensor twice, as output and as state.
        floats = {id(each): each for each in flat if values.is_float(each)}
        names = (
            [name] if len(floats) == 1 else [f"{name}[{i}]" for i in range(len(flat))]
        )
        taps = {
            key: self.tap(label, each)
            for (key, each), label in zip(floats.items(), names, strict=False)
        }
        return tf.nest.pack_sequence_as(
            structure, [taps.get(id(each), each) for each in flat]
        )


# The blocks that are open, outermost first.
_OPEN: list[RetainedGradients] = []


def retain(tensor: Any, name: str) -> Any:
    """Names a tensor, so that `retain_gradients` keeps its gradient.

    To be put into a function, a layer or a loss, around any intermediate tensor. It
    does nothing outside of a block of `retain_gradients`.

    Args:
      tensor: Floating tensor of any shape.
      name: What to call its gradient.

    Returns:
      `tensor`; inside a block of `retain_gradients` a tensor of the same values.

    Examples:
      >>> import tensorflow as tf
      >>> from tfsafe.debugging import retain, retain_gradients
      >>> x = tf.constant(3.0)
      >>> with retain_gradients() as gradients, tf.GradientTape() as tape:
      ...     tape.watch(x)
      ...     square = retain(x * x, "square")
      ...     loss = 5.0 * square
      ...     slope = tape.gradient(loss, x)
      >>> print(gradients["square"].numpy(), slope.numpy())
      5.0 30.0
    """
    for block in _OPEN:
        tensor = block.tap(name, tensor)
    return tensor


@contextlib.contextmanager
def retain_gradients(
    model: Any = None, layers: Sequence[Any] | None = None
) -> Iterator[RetainedGradients]:
    """Keeps the gradients of layer outputs and of named tensors, to be looked at.

    TensorFlow gives the gradients of weights, and of tensors at hand. In
    a block of this context manager every backward pass also leaves the gradients of
    the outputs of a model's layers, and of each tensor that `retain` has named, as
    hooks and `retain_grad` do in PyTorch. The values and the gradients of the weights
    stay what they are.

    Inside the block each `tf.function` runs eagerly, compiled ones and the training
    step of a compiled model too, so that tensors of loops and of nested functions are
    seen: a recurrent cell leaves one gradient for each time step, after a None for the
    call in which Keras learns its shapes. In a function that is being traced, the
    block keeps that function's own tensors, to be returned by it, and skips those in
    its loops.

    Args:
      model: Keras model or layer; if None, only tensors named by `retain` are kept.
      layers: Which of its layers: names, paths such as `"encoder/lstm"`, or the layers
        themselves. All if None, nested ones and the model itself included.

    Yields:
      A dict from name to gradient in the order of the forward pass. A layer has its
      name in the model, `"encoder/lstm"` if it is nested, and the model its own; of
      several output tensors each has its number, `"lstm[0]"`. A layer called again
      counts: `"dense"`, `"dense:1"`. None means an output that no backward pass
      has reached. `.outputs` has the tensors, `.clear()` forgets both, and
      `tfsafe.debugging.summarize` makes a table of either. If the loss is scaled, as
      under mixed precision, so are they.

    Raises:
      TypeError: If `model` is not a Keras layer or model.
      ValueError: If the model has no such layer.

    Examples:
      >>> import keras
      >>> import numpy as np
      >>> from tfsafe.debugging import retain_gradients, summarize
      >>> model = keras.Sequential([
      ...     keras.Input([2]),
      ...     keras.layers.Dense(3, name="hidden"),
      ...     keras.layers.Dense(1, kernel_initializer="ones", name="top"),
      ... ])
      >>> model.compile(loss="mean_absolute_error")
      >>> with retain_gradients(model, ["hidden", "top"]) as gradients:
      ...     loss = model.train_on_batch(np.ones([4, 2]), np.full([4, 1], 9.0))
      >>> print(summarize(gradients))
      tensor  shape  dtype      min    max   mean  first non-finite
      hidden  4x3    float32  -0.25  -0.25  -0.25                 -
      top     4x1    float32  -0.25  -0.25  -0.25                 -
    """
    chosen = [] if model is None else _chosen(model, layers)
    block = RetainedGradients()
    eager = tf.config.functions_run_eagerly()
    with contextlib.ExitStack() as stack:
        for name, layer in chosen:
            hook = functools.partial(block.tap_all, name)
            patch = Patch(layer, "call", functools.partial(_hooked, hook))
            patch.install()
            stack.callback(patch.remove)
        _OPEN.append(block)
        stack.callback(_OPEN.remove, block)
        tf.config.run_functions_eagerly(True)
        stack.callback(tf.config.run_functions_eagerly, eager)
        # TensorFlow warns that `tf.data` goes on as before; so it should.
        stack.enter_context(warnings.catch_warnings())
        warnings.filterwarnings("ignore", ".*does not apply to tf.data", UserWarning)
        yield block


def _chosen(model: Any, layers: Sequence[Any] | None) -> list[tuple[str, Any]]:
    """Returns the layers to hook, each with its name."""
    if not isinstance(model, keras.Layer):
        raise TypeError(
            "`model` must be a Keras model or layer. Received: "
            f"model={model!r} of type {type(model).__name__}. In a function, put "
            "`tfsafe.debugging.retain(tensor, name)` around its tensors."
        )
    # A layer in two places goes by its first name.
    named: dict[int, tuple[str, Any]] = {}
    for name, layer in _walk(model, ""):
        named.setdefault(id(layer), (name, layer))
    if layers is None:
        return list(named.values())
    wanted = [layers] if isinstance(layers, str) else list(layers)
    for each in wanted:
        if not any(_is_meant(each, *pair) for pair in named.values()):
            names = listed((f"{name!r}" for name, _ in named.values()), _NAMES)
            raise ValueError(
                "`layers` must name layers of the model, or be some of them. "
                f"Received: {each!r}. The model has {names}."
            )
    return [
        pair
        for pair in named.values()
        if any(_is_meant(each, *pair) for each in wanted)
    ]


def _is_meant(wanted: Any, name: str, layer: Any) -> bool:
    return layer is wanted or wanted in (name, layer.name)


def _walk(layer: Any, path: str) -> Iterator[tuple[str, Any]]:
    """Yields a layer and the layers in it, each with its path in the model."""
    if not isinstance(layer, keras.layers.InputLayer):
        yield path or layer.name, layer
    for each in _compat.sublayers(layer):
        yield from _walk(each, f"{path}/{each.name}" if path else each.name)


def _hooked(hook: Callable[[Any], Any], call: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a layer's `call` that passes its results through a hook."""

    def hooked(*args: Any, **kwargs: Any) -> Any:
        return hook(call(*args, **kwargs))

    return hooked


def _graph() -> Any:
    """Returns the graph being traced, or None in eager mode."""
    return None if tf.executing_eagerly() else tf.compat.v1.get_default_graph()


def _graph_of(value: Any) -> Any:
    """Returns the graph of a tensor or of `tf.IndexedSlices`, None if it is eager."""
    tensor = getattr(value, "values", value)
    return None if hasattr(tensor, "numpy") else tensor.graph
