"""Observes what TensorFlow and AutoGraph execute, by callbacks and by frames."""

import contextlib
import sys
import threading
import types
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

from tfsafe._compat._functions import is_xla

if TYPE_CHECKING:
    import tensorflow as tf


_eager_callbacks = 0
_eager_lock = threading.Lock()

# Argument of a `tf.function` whose graph is only read: no control dependencies, which
# take a tenth of a trace. Tried: TensorFlow 2.21.0.
UNORDERED = {"experimental_attributes": {"_disable_acd": True}}


class _Chained(NamedTuple):
    """A callback among others, such as that of TensorFlow's `enable_check_numerics`.

    In a trace each receives what the one before it returned, which is None where that
    one has nothing to change; TensorFlow's own fails then.
    """

    callback: Callable[..., None]

    def __call__(
        self,
        op_type: str,
        inputs: Any,
        attrs: Any,
        outputs: Any,
        op_name: Any = None,
        graph: Any = None,
    ) -> Any:
        if outputs is None:
            return None
        self.callback(op_type, inputs, attrs, outputs, op_name, graph)
        return list(outputs)


def add_eager_callback(callback: Callable[..., None]) -> None:
    """Calls `callback` after every operation that this thread executes.

    `context.add_op_callback` and `execute.execute`, on which TensorFlow's own
    `enable_check_numerics` is built. Its `op_callbacks.remove_op_callback` ends the
    callbacks of all threads where it ends the last one of its own; here they are
    counted. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      callback: Takes `op_type, inputs, attrs, outputs, op_name, graph`. `graph` is
        None for an operation that was executed, as opposed to traced.
    """
    from tensorflow.python.eager import context, execute

    global _eager_callbacks
    with _eager_lock:
        context.context().add_op_callback(_Chained(callback))
        _eager_callbacks += 1
        execute.execute = execute.execute_with_callbacks


def remove_eager_callback(callback: Callable[..., None]) -> None:
    """Ends what `add_eager_callback` began, in the same thread."""
    from tensorflow.python.eager import context, execute

    global _eager_callbacks
    with _eager_lock:
        context.context().remove_op_callback(_Chained(callback))
        _eager_callbacks -= 1
        if not _eager_callbacks and not context.context().op_callbacks:
            execute.execute = execute.quick_execute


@contextlib.contextmanager
def eager_callback(callback: Callable[..., None]) -> Iterator[None]:
    """Calls `callback` after every operation; see `add_eager_callback`."""
    add_eager_callback(callback)
    try:
        yield
    finally:
        remove_eager_callback(callback)


def called_function(frame: types.FrameType) -> tuple[Any, bool] | None:
    """Returns the traced function whose eager call is on the stack.

    The frame of `AtomicFunction.call_flat`. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      frame: Where to start; its callers are searched.

    Returns:
      Its graph and whether XLA compiles it; None if no function is being called.
    """
    inner: types.FrameType | None = frame
    while inner is not None:
        code = inner.f_code
        if code.co_name == "call_flat" and code.co_filename.endswith(
            "atomic_function.py"
        ):
            function = inner.f_locals["self"]
            return function.graph, is_xla(function.cached_definition)
        inner = inner.f_back
    return None


def differentiated(
    frame: types.FrameType,
) -> tuple[str, Sequence[Any], Sequence[Any]] | None:
    """Returns the forward operation that an eager tape is differentiating.

    The frame of `backprop._gradient_function`. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      frame: Where to start; its callers are searched.

    Returns:
      Its type, its inputs and its outputs, as far as the tape kept them; None if no
      tape is at work.
    """
    inner: types.FrameType | None = frame
    while inner is not None:
        code = inner.f_code
        if code.co_name == "_gradient_function" and code.co_filename.endswith(
            "backprop.py"
        ):
            held = inner.f_locals
            return held["op_name"], held["inputs"] or (), held["outputs"] or ()
        inner = inner.f_back
    return None


def before_autograph(frame: types.FrameType) -> tuple[str, int, str]:
    """Returns file, line and function of a frame, as they were before AutoGraph.

    AutoGraph runs a rewritten copy of a function, which holds a map of its lines:
    `ag_source_map`, found in the frame that calls it. Tried: TensorFlow 2.16.1 and
    2.21.0. In traced functions TensorFlow applies the map itself.
    """
    code = frame.f_code
    place = code.co_filename, frame.f_lineno, code.co_name
    if "__autograph_generated_file" not in code.co_filename or frame.f_back is None:
        return place
    copy = frame.f_back.f_locals.get("converted_f")
    for copied, origin in getattr(copy, "ag_source_map", {}).items():
        if (copied.filename, copied.lineno) == place[:2]:
            return origin.loc.filename, origin.loc.lineno, origin.function_name
    return place


# The functions under which all gradient functions are called, by the name of their
# file: the tape's, and that of the bodies of loops, branches and nested functions.
# Tried: TensorFlow 2.16.1 and 2.21.0.
GRADIENT_FRAMES = {
    "imperative_grad.py": "imperative_grad",
    "gradients_util.py": "_GradientsHelper",
}


def record(operation: Any, gradient: Callable[..., Any] | None = None) -> None:
    """Has the active tapes record an operation of a graph, as if they had seen it.

    `execute.record_gradient` and `record.record_operation`, which the wrapper of each
    operation calls. Tried: TensorFlow 2.16.1 and 2.21.0.

    Args:
      operation: An operation that was made by `tf.Graph.create_op`.
      gradient: Its gradient where that is not the one of its type: takes one tensor
        for each output and returns one for each input.
    """
    from tensorflow.python.eager import execute, record as tapes

    if not execute.must_record_gradient():
        return
    inputs, outputs = list(operation.inputs), list(operation.outputs)
    if gradient is not None:
        tapes.record_operation(operation.type, outputs, inputs, gradient)
        return
    attributes: list[Any] = []
    for each in operation.op_def.attr:
        attributes += [each.name, operation.get_attr(each.name)]
    execute.record_gradient(operation.type, inputs, tuple(attributes), outputs)


def share_function(graph: Any, name: str) -> None:
    """Gives the default graph a function of another one, which a copy calls by name.

    `Graph._get_function` and `_add_function_recursive`, tried with TensorFlow 2.21.0.
    The function runs without it, but a SavedModel lacks what its graphs do not have.
    """
    import tensorflow as tf

    function = graph._get_function(name)
    if function is not None:
        tf.compat.v1.get_default_graph()._add_function_recursive(function)


def watch(variable: Any) -> None:
    """Notifies the active tapes and the current graph that a variable is read.

    `resource_variable_ops.variable_accessed`. Tried: TensorFlow 2.16.1 and 2.21.0.
    """
    from tensorflow.python.ops import resource_variable_ops

    resource_variable_ops.variable_accessed(variable)


class Fit(NamedTuple):
    """A `fit`, `evaluate` or `predict` that is running.

    Attributes:
      data: Its argument `x`.
      epoch: The epoch, from 0; None but in `fit`.
      batch: The first batch of the call under way, from 0; None where not known.
      callbacks: Its callbacks.
    """

    data: Any
    epoch: int | None
    batch: int | None
    callbacks: Sequence[Any] = ()


def running_fit(model: Any, method: str = "fit") -> Fit | None:
    """Returns the `fit` of a model that is on this thread's stack, or None.

    So too its `evaluate` or `predict`, if `method` names one.

    The locals `x`, `epoch`, `begin_step`, `epoch_iterator` and `callbacks` of Keras'
    trainer, tried with Keras 3.3.3 and 3.15.1. A callback receives the numbers, but
    not the data.
    """
    needed = {"epoch_iterator", "epoch"} if method == "fit" else {"epoch_iterator"}
    frame: types.FrameType | None = sys._getframe(1)
    while frame is not None:
        # Its own keys are a set only up to Python 3.12.
        names = dict(frame.f_locals) if frame.f_code.co_name == method else {}
        if names.get("self") is model and needed <= names.keys():
            batch = names.get("begin_step", names.get("step"))
            callbacks = getattr(names.get("callbacks"), "callbacks", ())
            return Fit(names.get("x"), names.get("epoch"), batch, callbacks)
        frame = frame.f_back
    return None


# A dataset, what is called with its elements, and by which method of it.
Mapped = tuple["tf.data.Dataset", Callable[..., Any], str]
_METHODS = {
    "_MapDataset": "map",
    "_ParallelMapDataset": "map",
    "_FlatMapDataset": "flat_map",
    "_InterleaveDataset": "interleave",
    "_ParallelInterleaveDataset": "interleave",
}


def mapped(dataset: "tf.data.Dataset") -> list[Mapped]:
    """Returns the functions that a dataset maps, the first one first, and their data.

    `_input_dataset`, `_map_func` and `_func`, tried with TensorFlow 2.16.1 and 2.21.0.
    Empty where a function of the dataset calls Python, which might have an effect.
    """
    found = []
    for each in _parts(dataset):
        wrapper = getattr(each, "_map_func", None)
        if wrapper is None:
            continue
        if any(_calls_of_python(wrapper)):
            return []
        if method := _METHODS.get(type(each).__name__):
            found.append((each._input_dataset, wrapper._func, method))
    return found[::-1]


def given_tensors(dataset: "tf.data.Dataset") -> "list[tf.Tensor]":
    """Returns the tensors that a dataset of `from_tensors` or slices was given.

    `_tensors`, tried with TensorFlow 2.21.0.
    """
    return [x for each in _parts(dataset) for x in getattr(each, "_tensors", [])]


def python_calls(dataset: "tf.data.Dataset") -> "list[tf.Operation]":
    """Returns the operations of a dataset's functions that call Python, last first.

    So too the dataset that `from_generator` makes in a function.

    `_input_dataset` and `_map_func`, tried with TensorFlow 2.21.0.
    """
    kinds = "PyFunc", "GeneratorDataset"
    wrappers = (getattr(each, "_map_func", None) for each in _parts(dataset))
    return [op for each in wrappers if each for op in _calls_of_python(each, kinds)]


def _calls_of_python(
    wrapper: Any, kinds: Sequence[str] = ("PyFunc",)
) -> "list[tf.Operation]":
    operations = wrapper.function.graph.get_operations()
    return [each for each in operations if any(kind in each.type for kind in kinds)]


def _parts(dataset: Any) -> Iterator[Any]:
    """Yields a dataset and those that it is made of, the last one first.

    `_input_dataset`, `_datasets` of `zip` and `_dataset_to_concatenate`, tried with
    TensorFlow 2.21.0.
    """
    import tensorflow as tf

    while dataset is not None:
        yield dataset
        joined = (
            getattr(dataset, name, ())
            for name in ("_datasets", "_dataset_to_concatenate")
        )
        for each in tf.nest.flatten(list(joined)):
            yield from _parts(each)
        dataset = getattr(dataset, "_input_dataset", None)


_PACKAGE = __name__.partition(".")[0]
_MISSING = (ImportError, AttributeError, TypeError)


def exempt_from_autograph() -> None:
    """Has AutoGraph convert nothing of this package, as it does with Keras.

    In a `tf.function` it would convert every function that the user's calls, and their
    first trace would take seconds. `autograph.core.config.CONVERSION_RULES`, tried with
    TensorFlow 2.21.0. Without that list, or what `as_converted` needs, everything
    works, and takes longer.
    """
    try:
        from tensorflow.python.autograph.core import config

        _status()
        rule = config.DoNotConvert(_PACKAGE)
        if all(str(each) != str(rule) for each in config.CONVERSION_RULES):
            config.CONVERSION_RULES = (*config.CONVERSION_RULES, rule)
    except _MISSING:
        return


def hide_frames(paths: Sequence[str]) -> None:
    """Makes Keras leave frames of files below `paths` out of tracebacks, as its own.

    `keras.src.utils.traceback_utils._EXCLUDED_PATHS`, tried with Keras 3.15.1: what
    `keras.config.disable_traceback_filtering` shows again.
    """
    try:
        from keras.src.utils import traceback_utils

        known = traceback_utils._EXCLUDED_PATHS
        new = [path for path in paths if path not in known]
        traceback_utils._EXCLUDED_PATHS = (*known, *new)
    except _MISSING:
        return


def as_converted(function: Callable[..., Any]) -> Callable[..., Any]:
    """Returns a user's function as AutoGraph would call it here.

    For functions that this package is given: its own calls are not converted. The same
    function where AutoGraph is off. Not `tf.__internal__.autograph.tf_convert`, which
    changes the decorators of TensorFlow that a function has.
    """
    try:
        converted_call, context, is_on = _status()
    except _MISSING:
        return function
    if not is_on:
        return function
    options = context.options.call_options()

    def call(*args: Any, **kwargs: Any) -> Any:
        with context:
            return converted_call(function, args, kwargs, options=options)

    return call


def _status() -> tuple[Callable[..., Any], Any, bool]:
    """Returns what AutoGraph's code makes calls with, and whether it is on here.

    `autograph.impl.api.converted_call` and `autograph.core.ag_ctx`, tried with
    TensorFlow 2.21.0.
    """
    from tensorflow.python.autograph.core import ag_ctx
    from tensorflow.python.autograph.impl.api import converted_call

    context = ag_ctx.control_status_ctx()
    is_on = context.status == ag_ctx.Status.ENABLED and context.options is not None
    return converted_call, context, is_on
