"""Makes a concrete function whose graph holds its checks, to be saved and served."""

from collections.abc import Callable, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.debugging import values
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.replayed_call import written_slots
from tfsafe.debugging.checks.traced.instrumented import Instrumented
from tfsafe.debugging.state import deferred_writes
from tfsafe.debugging.state.variables import slot_of
from tfsafe.graph import TracedCall, UnreadableError, locate, resemble


def asserting(function: Any, options: Options) -> Any:
    """Returns a `tf.function` that checks its results by operations of its own.

    A concrete function runs without Python, which would raise `NumericsError`, in
    a server for instance. So its graph holds `tf.debugging.Assert` operations: a call
    with a non-finite result raises `tf.errors.InvalidArgumentError` and writes no
    variable. The message names the result; with `checks="domain"` or `"full"` also the
    first operation that was not finite, and its line.

    Args:
      function: A `tf.function`; one that XLA compiles is checked around that.
      options: The options of the check.
    """

    @tf.autograph.experimental.do_not_convert
    def body(*args: Any, **kwargs: Any) -> Any:
        return _checked_result(function, options, args, kwargs)

    resemble(body, function.python_function)
    return tf.function(body, input_signature=function.input_signature, autograph=False)


def _checked_result(
    function: Callable[..., Any], options: Options, args: Any, kwargs: Any
) -> Any:
    call = TracedCall(function, args, kwargs)
    slots = written_slots(call.concrete, {})
    slots += [
        slot_of(leaf, {})
        for leaf in tf.nest.flatten((args, kwargs))
        if isinstance(leaf, tf.Variable)
    ]
    try:
        traced = Instrumented(call, options, slots, holds=not options.exclude)
    except UnreadableError:
        return _with_results_checked(call.run())
    before = [slot.read() for slot in traced.look.kept]
    traced.emit()
    new = [slot.read() for slot in traced.look.kept] + traced.frozen.values()
    is_good = tf.math.is_finite(deferred_writes.finite_sum([traced.result, new]))
    if options.strict:
        is_good &= ~tf.reduce_any(traced.flags)
    traced.frozen.commit(is_good)
    for slot, old in zip(traced.look.kept, before, strict=True):
        slot.write(tf.where(is_good, slot.read(), old))
    return _after(
        tf.debugging.Assert(is_good, [_message(traced.result, traced)]), traced.result
    )


def _with_results_checked(result: Any) -> Any:
    is_good = tf.math.is_finite(deferred_writes.finite_sum(result))
    return _after(tf.debugging.Assert(is_good, [_message(result)]), result)


def _after(check: tf.Operation, result: Any) -> Any:
    with tf.control_dependencies([check]):
        return tf.nest.map_structure(tf.identity, result, expand_composites=True)


def _message(result: Any, traced: Instrumented | None = None) -> tf.Tensor:
    """Returns the text of the error: the results, and the first operation flagged."""
    labels, flags = [], []
    for label, value in values.leaves(result, "output"):
        if values.is_float(value):
            labels.append(label)
            flags.append(~tf.math.is_finite(deferred_writes.finite_sum(value)))
    text = "NaN or Inf in a variable that the function writes."
    parts = [_first(flags, [f"NaN or Inf in {each}." for each in labels], text)]
    if traced is not None and traced.look.flagged:
        sentences = _sentences(traced)
        parts.append(_first(traced.flags, sentences, " Its operation is not known."))
    return tf.strings.join(parts)


def _sentences(traced: Instrumented) -> list[str]:
    found = []
    for op, _ in traced.look.flagged:
        site = locate(op, traced.look.graphs).site
        where = f"{site.place}: {site.source}" if site else f"`{op.name}`"
        found.append(f" The first of its operations is {op.type} at {where}")
    return found


def _first(flags: Any, texts: Sequence[str], otherwise: str) -> tf.Tensor:
    """Returns the text of the first flag that is True."""
    everything = tf.constant([*texts, otherwise])
    raised = tf.concat([tf.convert_to_tensor(flags, tf.bool), [True]], 0)
    return everything[tf.argmax(tf.cast(raised, tf.int32))]
