"""Switches numeric checks on and off for all that a program runs."""

import contextlib
import functools
import threading
import warnings
import weakref
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import keras
import tensorflow as tf

from tfsafe._faults import contained
from tfsafe._patching import Patch
from tfsafe.debugging.checks.eager.session import Session
from tfsafe.debugging.checks.enclosing import is_outermost
from tfsafe.debugging.checks.options import Level, Options, options_of
from tfsafe.debugging.checks.tally import TALLY
from tfsafe.debugging.checks.traced.compiled import CompiledCheck
from tfsafe.debugging.models import adapted, data_source
from tfsafe.debugging.models.model import check_model, is_checked, uncheck_model
from tfsafe.debugging.state.variables import variables_in
from tfsafe.errors import NumericsError
from tfsafe.graph import body_of, is_user_function


class Switch:
    """Has the calls of a program go through checks while it is on.

    While it is on, a few methods of the public classes of functions, tapes and models
    are other ones. So it reaches those that were made before, in all threads.
    """

    def __init__(self) -> None:
        self._lock = threading.RLock()
        # Requests by whom they are from, the last one last.
        self._askers: list[tuple[object, Options]] = []
        self._patches: list[Patch] = []
        self._local = threading.local()
        self._checks: weakref.WeakKeyDictionary[Any, tuple[Options, CompiledCheck]] = (
            weakref.WeakKeyDictionary()
        )
        self._models: weakref.WeakSet[keras.Model] = weakref.WeakSet()

    def active(self) -> Options | None:
        """Returns what is asked for; None while the switch is off."""
        askers = self._askers
        return askers[-1][1] if askers else None

    def is_due(self) -> bool:
        """Returns whether what the program calls now is checked."""
        with contained("choosing what to check"):
            return self.active() is not None and is_outermost()
        return False

    def ask(self, asker: object, options: Options) -> None:
        """Switches on, or changes what is asked for."""
        with self._lock:
            was_on = bool(self._askers)
            self._askers = [each for each in self._askers if each[0] is not asker]
            self._askers.append((asker, options._replace(is_for_program=True)))
            if not was_on:
                self._patches = list(self._made())
                for patch in self._patches:
                    patch.install()
            self._follow_models()
            self.session()

    def leave(self, asker: object) -> None:
        """Withdraws a request; switches off after the last one."""
        with self._lock:
            was_on = bool(self._askers)
            self._askers = [each for each in self._askers if each[0] is not asker]
            if was_on and not self._askers:
                for patch in self._patches:
                    patch.remove()
                self._checks.clear()
                self.session().close()
            self._follow_models()

    def session(self) -> Session:
        """Returns the session of this thread."""
        found = getattr(self._local, "session", None)
        if found is None or not found.is_open:
            found = self._local.session = Session(self.active)
        return found

    def check_for(self, function: Any) -> CompiledCheck | None:
        """Returns the check of a call now, which lives as long as the function."""
        options = self.active()
        if options is None or not is_outermost():
            return None
        self.session()
        if tf.config.functions_run_eagerly() or not _is_users(function):
            return None
        known, check = self._checks.get(function, (None, None))
        if check is None or known != options:
            check = CompiledCheck(weakref.proxy(function), options=options)
            self._checks[function] = options, check
        return check

    def check_model(self, model: keras.Model) -> bool:
        """Returns whether a model runs its steps under the checks from now on."""
        options = self.active()
        if options is None or is_checked(model):
            return False
        with contained("the check of a model"):
            try:
                check_model(model, options)
            except ValueError as error:
                warnings.warn(f"{error} It is not checked.", stacklevel=4)
            else:
                self._models.add(model)
                return True
        return False

    def _follow_models(self) -> None:
        options = self.active()
        for model in list(self._models):
            uncheck_model(model)
            if options is not None:
                check_model(model, options)
        if options is None:
            self._models.clear()

    def _made(self) -> Iterator[Patch]:
        # Of the abstract classes: to trace a function ends the choice of devices.
        experimental = tf.types.experimental
        for abstract in (experimental.GenericFunction, experimental.ConcreteFunction):
            for kind in abstract.__subclasses__():
                yield self._patch(kind, "__call__", _calls)
        for name in ("gradient", "jacobian", "batch_jacobian"):
            yield self._patch(tf.GradientTape, name, _gradients)
        for name in ("train", "test", "predict"):
            yield self._patch(keras.Model, f"make_{name}_function", _makes)
        yield self._patch(keras.optimizers.LossScaleOptimizer, "scale_loss", _scales)
        yield self._patch(keras.Optimizer, "apply", _applies)
        yield self._patch(keras.layers.Normalization, "adapt", _adapts)

    def _patch(self, kind: type, name: str, wrap: Callable[..., Any]) -> Patch:
        return Patch(kind, name, functools.partial(wrap, self))


def _calls(switch: Switch, original: Callable[..., Any]) -> Callable[..., Any]:
    def call(function: Any, *args: Any, **kwargs: Any) -> Any:
        check = None
        with contained("choosing what to check"):
            check = switch.check_for(function)
        if check is None:
            return original(function, *args, **kwargs)
        with data_source.named():
            return check(*args, **kwargs)

    return call


def _gradients(switch: Switch, original: Callable[..., Any]) -> Callable[..., Any]:
    def gradients(tape: Any, target: Any, *args: Any, **kwargs: Any) -> Any:
        if not switch.is_due():
            return original(tape, target, *args, **kwargs)
        with contextlib.ExitStack() as open_:
            with contained("the check of gradients"):
                open_.enter_context(switch.session().differentiating())
            result = original(tape, target, *args, **kwargs)
        TALLY.gradients += 1
        with contained("the check of gradients"):
            switch.session().check_gradients(target, result)
        return result

    return gradients


def _makes(switch: Switch, original: Callable[..., Any]) -> Callable[..., Any]:
    def make(model: keras.Model, force: bool = False) -> Any:
        if not switch.check_model(model):
            return original(model, force=force)
        # The model's own attribute by now.
        return getattr(model, original.__name__)(force=force)

    return make


def _scales(switch: Switch, original: Callable[..., Any]) -> Callable[..., Any]:
    def scale(optimizer: Any, loss: Any) -> Any:
        scaled = original(optimizer, loss)
        if switch.active() is not None and tf.executing_eagerly():
            with contained("noting a scaled loss"):
                switch.session().scaled(scaled)
        return scaled

    return scale


def _applies(switch: Switch, original: Callable[..., Any]) -> Callable[..., Any]:
    def apply(optimizer: Any, grads: Any, trainable_variables: Any = None) -> Any:
        if not switch.is_due():
            return original(optimizer, grads, trainable_variables)
        if trainable_variables is not None:
            # As Keras does: it may be a generator.
            trainable_variables = list(trainable_variables)
        with contextlib.ExitStack() as open_:
            with contained("reading variables before an update"):
                updated = [*optimizer.variables, *(trainable_variables or ())]
                open_.enter_context(switch.session().updating(variables_in(updated)))
            return original(optimizer, grads, trainable_variables)

    return apply


def _adapts(switch: Switch, original: Callable[..., Any]) -> Callable[..., Any]:
    del switch

    def adapt(layer: Any, data: Any, *args: Any, **kwargs: Any) -> Any:
        try:
            return original(layer, data, *args, **kwargs)
        except NumericsError as error:
            adapted.note(error, layer, data)
            raise

    return adapt


@functools.cache
def _function_class() -> Any:
    return type(tf.function(lambda: None))


def _is_users(function: Any) -> bool:
    """Returns whether a function is the user's, or a library's for all to use.

    `tf.vectorized_map`, for one, makes a function inside and calls it.
    """
    # A function that was loaded is of a class of its own, and is the user's.
    if type(function) is not _function_class():
        return True
    body = function.python_function
    return is_user_function(body) or "<locals>" not in body_of(body).__qualname__


SWITCH = Switch()
_ENABLED = object()


def enable_check_numerics(
    stack_height_limit: int = 30,
    path_length_limit: int = 50,
    *,
    checks: Level = "watch",
    strict: bool = False,
    exclude: Sequence[str] = (),
) -> None:
    """Switches numeric checks on, for all that the program runs from now on.

    Takes the place of `tf.debugging.enable_check_numerics`. It reaches functions that
    are traced already and models that are compiled, with XLA or without, and all
    threads:

    - A call of a `tf.function`, or of one that was loaded, is checked as by
      `tfsafe.checked`: the outermost one, called eagerly. So are the steps of a Keras
      model in `fit`, `evaluate` and `predict`.
    - In eager code the gradients that a `tf.GradientTape` returns and the values that
      variables are given must be finite. Infinities that the program writes itself
      pass. A variable that is given a non-finite value keeps its last one, if the
      program has read that. A non-finite `apply` of a Keras optimizer changes no
      variable, except those that the optimizer makes in its first step. The gradients
      of a loss that a `LossScaleOptimizer` has scaled overflow by design and pass.

    What it cannot reach: a `fit` that is running; a function that is being called; the
    eager operations of another thread until that thread calls a `tf.function` or asks
    a tape for gradients; the functions that `tf.data` maps, and what a
    `tf.py_function` does, except by their results.

    Args:
      stack_height_limit: Ignored, as a finding names one line; part of TensorFlow's
        signature.
      path_length_limit: Ignored, for the same reason.
      checks: As in `tfsafe.checked`.
      strict: As in `tfsafe.checked`; it reports eager operations too.
      exclude: As in `tfsafe.checked`.

    Raises:
      TypeError: If `strict` is not a boolean, `exclude` not a sequence of strings, or
        the level is a positional argument.
      ValueError: If `checks` is not a level, or a rule of `exclude` cannot be read.
      RuntimeError: If TensorFlow runs without eager execution.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> @tf.function
      ... def logarithm(x):
      ...     return tf.math.log(x)
      >>> print(logarithm(tf.constant(0.0)).numpy())
      -inf
      >>> tfsafe.debugging.enable_check_numerics()
      >>> try:
      ...     logarithm(tf.constant(0.0))
      ... except tfsafe.NumericsError as error:
      ...     print(error.findings[0].op_type, error.findings[0].cause)
      Log log of 1 zero.
      >>> tfsafe.debugging.disable_check_numerics()
      >>> print(logarithm(tf.constant(0.0)).numpy())
      -inf
    """
    if not isinstance(stack_height_limit, int):
        raise TypeError(
            "`enable_check_numerics` takes a level, by keyword. Received: "
            f"{stack_height_limit=!r:.80}. Write `checks=` before it, or `checked(f)`."
        )
    del stack_height_limit, path_length_limit
    _require_eager()
    SWITCH.ask(_ENABLED, options_of(checks, strict, exclude))


def disable_check_numerics() -> None:
    """Ends what `enable_check_numerics` began; a `with` block keeps its own checks.

    Functions and models are then as they were before. Nothing happens where the checks
    are not on.

    Examples:
      >>> import tfsafe
      >>> tfsafe.debugging.enable_check_numerics(checks="full", exclude=["op:Log"])
      >>> tfsafe.debugging.disable_check_numerics()
    """
    SWITCH.leave(_ENABLED)


def check_numerics(
    *target: Any,
    checks: Level = "watch",
    strict: bool = False,
    exclude: Sequence[str] = (),
) -> contextlib.AbstractContextManager[object]:
    """Switches numeric checks on for a block; see `enable_check_numerics`.

    Blocks may be nested: the innermost says what is asked for.

    Args:
      *target: Not accepted; the error says what to use.
      checks: As in `tfsafe.checked`.
      strict: As in `tfsafe.checked`.
      exclude: As in `tfsafe.checked`.

    Returns:
      A context manager.

    Raises:
      TypeError: If there is a positional argument, `strict` is not a boolean or
        `exclude` not a sequence of strings.
      ValueError: If `checks` is not a level, or a rule of `exclude` cannot be read.
      RuntimeError: If TensorFlow runs without eager execution.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> weight = tf.Variable(0.0)
      >>> try:
      ...     with tfsafe.debugging.check_numerics():
      ...         with tf.GradientTape() as tape:
      ...             loss = tf.sqrt(weight)
      ...         tape.gradient(loss, weight)
      ... except tfsafe.NumericsError as error:
      ...     print(error.findings[0].op_type, error.findings[0].forward_op)
      SqrtGrad Sqrt
    """
    if target:
        raise TypeError(
            "`check_numerics` is a block, `with check_numerics():`, and takes keyword "
            f"arguments only. Received: {len(target)} positional. Write `checked(f)` "
            "for a function or a model, and `debugging.summarize(x)` for a tensor."
        )
    return block(options_of(checks, strict, exclude))


@contextlib.contextmanager
def block(options: Options) -> Iterator[Session]:
    """Is `check_numerics`, and yields what follows the eager operations."""
    _require_eager()
    asker = object()
    SWITCH.ask(asker, options)
    try:
        yield SWITCH.session()
    finally:
        SWITCH.leave(asker)


def _require_eager() -> None:
    if not tf.compat.v1.executing_eagerly_outside_functions():
        raise RuntimeError(
            "numeric checks need eager execution. Remove "
            "`tf.compat.v1.disable_eager_execution()`."
        )
    if tf.inside_function():
        warnings.warn(
            "numeric checks were switched on inside a function that is being traced. "
            "They do not reach this call of it: switch them on outside.",
            stacklevel=4,
        )
