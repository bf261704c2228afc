"""Defines `tfsafe.stabilize`, which rewrites formulas into their stable form."""

import contextlib
import functools
import inspect
from collections.abc import Callable, Iterable
from typing import Any, Protocol, TypeVar, cast, overload

import keras

from tfsafe import _args, _calls
from tfsafe.graph import Wrapper
from tfsafe.rewriting.engine.function import is_stabilized, stabilized
from tfsafe.rewriting.reports.report import Report, report_of
from tfsafe.rewriting.reports.verify import verified
from tfsafe.rewriting.rules import table
from tfsafe.rewriting.targets.keras_loss import StabilizedLoss
from tfsafe.rewriting.targets.keras_model import model_report, stabilize_model

_Names = str | Iterable[str]
_Target = TypeVar("_Target", bound=Callable[..., Any])


class Stabilize(Protocol):
    """`stabilize` as type checkers and editors see it: a function with two others."""

    @overload
    def __call__(
        self,
        target: _Target,
        *,
        rules: _Names | None = ...,
        exclude: _Names = ...,
        verify: bool = ...,
    ) -> _Target: ...
    @overload
    def __call__(
        self, *, rules: _Names | None = ..., exclude: _Names = ..., verify: bool = ...
    ) -> Callable[[_Target], _Target]: ...

    def report(self, target: Any, /, *args: Any, **kwargs: Any) -> Report:
        """Lists what `stabilize` rewrites in a function for certain arguments."""

    def rules(self) -> list[str]:
        """Lists the names of the rules, in the order in which they are tried."""


# Methods of Keras' models that take whole steps, and are not traced themselves.
_STEPS = {
    *("fit", "evaluate", "predict"),
    *("train_on_batch", "test_on_batch", "predict_on_batch"),
}


def _check(target: Any) -> None:
    if isinstance(target, type):
        raise TypeError(
            "`target` must be a function, a loss or a model, not a class. Received: "
            f"target={target.__name__}. Stabilize an instance, or put "
            "`@tfsafe.stabilize` on a method of the class."
        )
    if not callable(target):
        raise TypeError(
            "`target` must be a function, a `tf.function`, a method, a Keras loss or a "
            f"Keras model. Received: target={target!r} of type "
            f"{type(target).__name__}. Pass the function itself, as in "
            "`stabilize(f)`, not its result; of a loss the object, as in "
            "`stabilize(keras.losses.get('mse'))`."
        )
    _args.refuse_deferred(target, "stabilize")
    name = getattr(target, "__name__", "")
    if name in _STEPS and isinstance(getattr(target, "__self__", None), keras.Model):
        raise TypeError(
            f"`target` must not be a method that takes steps of a model. Received: "
            f"target={name}. Stabilize the model itself, `stabilize(model)`, and call "
            f"its `{name}` as before."
        )


def report(target: Any, /, *args: Any, **kwargs: Any) -> Report:
    """Lists what `stabilize` rewrites in a function called with these arguments.

    The function is traced and not run. The trace may repeat Python side effects such
    as `print`.

    Args:
      target: What `stabilize` takes, or what it returned. A function that was not
        stabilised is examined with all rules.
      *args: Arguments to trace it with: tensors, arrays, `tf.TensorSpec`. For a
        Keras model a batch: inputs, and targets and sample weights if there are any;
        a tuple of them, as a dataset yields it, is one too.
      **kwargs: Arguments by name.

    Returns:
      One entry for each rewrite, in the order of the program. Its `str` is a table.

    Raises:
      TypeError: If `target` is a class or cannot be called; if arguments are missing.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> def entropy_term(p):
      ...     return tf.reduce_sum(tf.sin(p))
      >>> print(tfsafe.stabilize.report(entropy_term, tf.constant([0.5])))
      Nothing to rewrite: no rule fits a formula of `entropy_term`.
    """
    _check(target)
    if not args and not kwargs:
        _check_needs_none(target)
    if isinstance(target, keras.Model):
        return model_report(target, args, kwargs)
    if isinstance(target, keras.losses.Loss):
        if not isinstance(target, StabilizedLoss):
            target = StabilizedLoss(target)
        function = target.function
        args, kwargs = target.arguments(*args, **kwargs), {}
    else:
        function = getattr(target, "stabilized", target)
        if not is_stabilized(function):
            function = stabilized(function, table.all_rules())
    return report_of(function, args, kwargs)


def _check_needs_none(target: Any) -> None:
    """Refuses a function without arguments that it needs, before TensorFlow does."""
    if getattr(target, "input_signature", None) is not None:
        return
    if not isinstance(target, keras.Model):
        with contextlib.suppress(TypeError, ValueError):
            inspect.signature(target).bind()
            return
    name = getattr(target, "__name__", None) or getattr(target, "name", "f")
    raise TypeError(
        f"`stabilize.report` traces `{name}` with arguments of yours. Received: none. "
        f"Pass them after the function, as in `stabilize.report({name}, x)`, or their "
        "shape and dtype, `tf.TensorSpec([None, 10], tf.float32)`."
    )


def rules() -> list[str]:
    """Lists the names of the rules, in the order in which they are tried."""
    return [rule.name for rule in table.all_rules()]


def _with_reports(function: Callable[..., Any]) -> Stabilize:
    vars(function).update(report=report, rules=rules)
    return cast(Stabilize, function)


@_with_reports
@_calls.answered()
def stabilize(
    target: Any = ...,
    *,
    rules: _Names | None = None,
    exclude: _Names = (),
    verify: bool = False,
) -> Any:
    """Rewrites the formulas in a function or a model into their stable form.

    The function is traced as `tf.function` does it, and what it computes is recognised
    in the graph: the logarithm of a softmax, however it is spelled, becomes the log
    softmax, and so on. `tfsafe.stabilize.report` lists what was found. Where the naive
    form was finite and accurate, the result is the same to a few ulps; where it gave
    NaN or Inf or lost its digits, it is right. Shapes, dtypes, random numbers, side
    effects and their order are unchanged.

    Gradients are those of the stable form, whether a `tf.GradientTape` is around the
    function or inside it, as in a train step of one's own; so are `tape.jacobian`,
    `tape.batch_jacobian`, `tf.gradients` and `tf.autodiff.ForwardAccumulator`. Loops,
    branches and each `tf.function` that it calls are rewritten as well.

    Called while another `tf.function` is traced, the stable form is traced into that
    one in place, unless it has `jit_compile=True` or an input signature.

    Args:
      target: What to rewrite. A Python function of tensors, a `tf.function` (whose
        options are kept, `jit_compile` among them) or a method; a Keras loss; or a
        Keras model: its steps of `fit`, `evaluate` and `predict` are rewritten from
        then on, forward pass and loss together, on one device or on several replicas,
        and so are a call of the model and what `model.export` writes, which needs no
        tfsafe to run. A call is traced as by `tf.function`: it does not see attributes
        of layers that change later, `trainable` excepted. Without `target`, a decorator
        is returned.
      rules: Names of the rules to apply, None for all. `tfsafe.stabilize.rules()`
        lists them.
      exclude: Names of rules not to apply.
      verify: Whether the first call runs both forms, and a third in float64 as
        reference, on its arguments and on these times 10 and 1/10, and compares values
        and gradients. Where the stable form is wrong and the naive one is not, the
        single formula behind it runs as written from then on, and a warning names it.
        It is for development: that call takes many times as long, and the result is a
        plain function.

    Returns:
      A `tf.function` with the arguments and results of `target`; for a loss a Keras
      loss; for a model the model itself. Inside another function that is stabilised,
      `target` is called as it was: the outermost function is rewritten as a whole.

    Raises:
      TypeError: If `target` is a class or cannot be called.
      ValueError: If a rule is unknown.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> @tfsafe.stabilize
      ... def cross_entropy(logits):
      ...     return -tf.math.log(tf.nn.softmax(logits))[0]
      >>> print(cross_entropy(tf.constant([-200.0, 0.0])).numpy())
      200.0
    """
    _args.one_of(verify, (True, False), "verify")
    if target is ...:
        return functools.partial(stabilize, rules=rules, exclude=exclude, verify=verify)
    chosen = table.chosen(rules, exclude)
    _check(target)
    build = verified if verify else stabilized
    if isinstance(target, Wrapper):
        return target.around(
            functools.partial(stabilize, rules=rules, exclude=exclude, verify=verify)
        )
    # `tf.function(checked(f))`: the check belongs outside the stable form.
    inner = getattr(target, "python_function", None)
    if isinstance(inner, Wrapper):
        return inner.around(lambda _: build(target, chosen))
    if isinstance(target, keras.Model):
        return stabilize_model(target, chosen, verify=verify)
    if isinstance(target, keras.losses.Loss):
        return StabilizedLoss(target, rules=rules, exclude=exclude, verify=verify)
    return build(target, chosen)
