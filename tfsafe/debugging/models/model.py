"""Checks the steps of `fit`, `evaluate` and `predict` of a Keras model."""

import collections
import functools
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import keras
import tensorflow as tf

from tfsafe._faults import hide_frames, or_plain
from tfsafe._patching import Patch, patches_on
from tfsafe.debugging.checks.eager.function import EagerCheck
from tfsafe.debugging.checks.options import Options
from tfsafe.debugging.checks.traced.watched_call import note_shown
from tfsafe.debugging.models.execution import Execution, Part
from tfsafe.debugging.models.loss_scale import without_gradients
from tfsafe.debugging.models.step import (
    CompiledStep,
    batch_labels,
    build_for_replicas,
    check_strategy,
    joined,
    mean,
    noted as noted_steps,
    without_optionals,
)
from tfsafe.debugging.models.when import Clock
from tfsafe.debugging.state import variables as _state

KINDS = ("train", "test", "predict")
_USUAL = Options()


def check_model(model: keras.Model, options: Options = _USUAL) -> keras.Model:
    """Makes a model run its steps under the checks; see `checked`.

    Keras asks `make_train_function` and its two siblings for the function that it
    then calls once a batch. Models are customised by them; they are replaced here.

    Returns:
      The model.

    Raises:
      ValueError: If the model makes these functions in a way of its own, or is trained
        by several workers.
    """
    steps = Steps(model, options)
    uncheck_model(model)
    for kind in KINDS:
        Patch(model, _maker(kind), functools.partial(_checked, steps, kind)).install()
        _make_again(model, kind)
    return model


def uncheck_model(model: keras.Model) -> keras.Model:
    """Makes a model run its steps as Keras does, checked before or not."""
    for kind in KINDS:
        for patch in _checks_of(model, kind):
            patch.remove()
            _make_again(model, kind)
    return model


def is_checked(model: keras.Model) -> bool:
    """Returns whether a model runs its steps under the checks."""
    return bool(_checks_of(model, "train"))


def _checked(steps: "Steps", kind: str, original: Any) -> functools.partial[Any]:
    del original
    return functools.partial(steps.make, kind)


def _checks_of(model: keras.Model, kind: str) -> list[Patch]:
    return [
        patch
        for patch in patches_on(model, _maker(kind))
        if isinstance(patch.wrapper, functools.partial)
        and isinstance(getattr(patch.wrapper.func, "__self__", None), Steps)
    ]


def _maker(kind: str) -> str:
    return f"make_{kind}_function"


def _make_again(model: keras.Model, kind: str) -> None:
    """Replaces the function that Keras keeps, if it has made one."""
    name = f"{kind}_function"
    was_made = getattr(model, name, None) is not None
    setattr(model, name, None)
    # At once: a `fit` that is under way asks no maker before its next batch.
    if was_made:
        getattr(model, _maker(kind))(force=True)


def _is_own(model: keras.Model, name: str) -> bool:
    return getattr(type(model), name) is not getattr(keras.Model, name)


# Takes a batch.
Step = Callable[[Any], Any]
Guard = Callable[[str, Step, Step], Step]


def _nothing_around(kind: str, checked: Step, plain: Step) -> Step:
    del kind, plain
    return checked


class Steps:
    """The three functions that Keras calls once a batch, checked.

    Args:
      model: The model.
      options: As in `checked`.
      guard: Called with the kind of a step, the checked step and the plain one;
        returns the step to take.

    Attributes:
      clock: Counts the batches.

    Raises:
      ValueError: As `check_model`.
    """

    def __init__(
        self, model: keras.Model, options: Options, guard: Guard = _nothing_around
    ):
        own = [name for name in map(_maker, KINDS) if _is_own(model, name)]
        if own:
            raise ValueError(
                f"The checks replace `{own[0]}`, which this model defines itself. "
                f"Received: model {model.name!r} of class {type(model).__name__}. "
                "Apply `tfsafe.checked` to the step inside that function instead."
            )
        check_strategy(model)
        hide_frames()
        self._model = model
        self._guard = guard
        self._options = options
        self.clock = Clock(model)

    def make(self, kind: str, force: bool = False) -> Any:
        """Sets `model.train_function`, or that of another kind, as Keras does."""
        name = f"{kind}_function"
        if getattr(self._model, name) is None or force:
            setattr(self._model, name, self.function(kind))
        return getattr(self._model, name)

    def function(self, kind: str) -> Step:
        """Returns what Keras calls for each batch, or for a few of them."""
        model = self._model
        if kind == "predict":
            return self._over_list(self._check(kind, model.predict_step, joined))
        own = model.train_step if kind == "train" else model.test_step
        return self._over_iterator(kind, self._check(kind, own, mean))

    def _check(
        self,
        kind: str,
        step: Step,
        reduce: Callable[[tf.distribute.Strategy, Any], Any],
    ) -> Callable[[Any], "_Checked"]:
        model = self._model
        # An eager check cannot look into a function that writes to variables.
        is_eager = model.run_eagerly and not any(
            getattr(patch.wrapper, "is_graph", False)
            for patch in patches_on(model, f"{kind}_step")
        )

        @tf.autograph.experimental.do_not_convert
        def one_step(data: Any) -> Any:
            strategy = model.distribute_strategy
            is_one = strategy.num_replicas_in_sync == 1
            if not is_one:
                build_for_replicas(model, kind, data)
            optimizer = getattr(model, "optimizer", None) if is_one else None
            with noted_steps(optimizer, self._options.level) as noted:
                results = reduce(strategy, strategy.run(step, args=(data,)))
            if not (noted and isinstance(results, dict)):
                return results
            return {**results, **noted}

        note_shown(one_step, step)
        known: dict[str, _Checked] = {}

        def of(spec: Any) -> _Checked:
            key = repr(spec)
            if key not in known:
                known[key] = self._both(kind, one_step, spec, is_eager)
            return known[key]

        return of

    def _both(self, kind: str, step: Step, spec: Any, is_eager: bool) -> "_Checked":
        """Returns the checked step, and several of them in one call if possible."""
        options = self._options._replace(has_logs=kind != "predict")
        if is_eager:
            check = EagerCheck(
                step,
                variables=self._variables,
                names=self._names,
                labels=batch_labels,
                options=options,
            )
            return _Checked(self._guarded(kind, check, step))
        compiled = CompiledStep(
            step,
            spec,
            jit_compile=self._model.jit_compile,
            names=self._names,
            options=options,
        )
        one = self._guarded(kind, compiled, compiled.plain)
        if spec is None:
            return _Checked(one)
        execution = Execution(compiled, spec)
        examined = self._guarded(
            kind, execution.examined, execution.plain, lambda part: part.steps
        )
        return _Checked(one, execution, examined)

    def _guarded(
        self,
        kind: str,
        step: Step,
        plain: Step,
        count: Callable[[Any], int] = lambda _: 1,
    ) -> Step:
        if kind == "train":
            timed = self.clock.timed(step, count)
        else:
            method = "evaluate" if kind == "test" else kind
            timed = self.clock.placed(step, method)
        return self._guard(kind, timed, plain)

    def _over_iterator(self, kind: str, checked: Callable[[Any], "_Checked"]) -> Step:
        def run(iterator: Iterator[Any]) -> Any:
            # What Keras' own step sees of the shapes: the size of the batch is open.
            spec = getattr(iterator, "element_spec", None)
            if kind == "train":
                self.clock.begin_call()
            taken = checked(spec).taken(
                iterator,
                self._model.steps_per_execution,
                lambda: kind == "train" and self._model.stop_training,
            )
            last = collections.deque(taken, maxlen=1)
            if not last:
                raise StopIteration
            return without_gradients(last[0])

        return run

    @staticmethod
    def _over_list(checked: Callable[[Any], "_Checked"]) -> Step:
        def run(batches: Sequence[Any]) -> Any:
            step = checked(None).one
            outputs = [
                without_gradients(step(without_optionals(batch))) for batch in batches
            ]
            if len(outputs) == 1:
                return outputs[0]
            return tf.nest.map_structure(lambda *each: tf.concat(each, 0), *outputs)

        return run

    def _keras_variables(self) -> list[Any]:
        optimizer = getattr(self._model, "optimizer", None)
        return [*self._model.variables, *(optimizer.variables if optimizer else [])]

    def _local(self) -> Iterator[tuple[tf.Variable, str]]:
        """Yields the variables, on each replica, with their paths."""
        for each in self._keras_variables():
            for variable in _state.variables_in(each):
                yield variable, each.path

    def _variables(self) -> list[tf.Variable]:
        return [variable for variable, _ in self._local()]

    def _names(self) -> _state.Names:
        return {id(variable.handle): path for variable, path in self._local()}


class _Checked(NamedTuple):
    """The checked steps on batches of one kind.

    Attributes:
      one: Takes the step on a batch.
      execution: Takes several in one call; None if they cannot be compiled.
      examined: Returns the results of a part of that call.
    """

    one: Step
    execution: Execution | None = None
    examined: Step | None = None

    def taken(
        self, iterator: Iterator[Any], steps: int, has_ended: Callable[[], bool]
    ) -> Iterator[Any]:
        """Takes steps, and yields results: the last are those of the last step.

        Args:
          iterator: Gives the batches.
          steps: How many, if there are as many batches.
          has_ended: Asked after each examination whether to go on.
        """
        left = steps
        execution, examined = self.execution, self.examined
        is_one_call = isinstance(iterator, tf.data.Iterator)
        while left and is_one_call and execution is not None and examined is not None:
            parts = None
            if not execution.is_off:
                parts = _parts(execution, iterator, left if steps > 1 else None)
            if parts is None:
                break
            for part in parts:
                yield examined(part)
                left -= part.steps
            if not parts or parts[-1].failure is None or has_ended():
                return
        for _ in range(left):
            try:
                batch = next(iterator)
            except StopIteration:
                return
            yield self.one(without_optionals(batch))
            if has_ended():
                return


def _parts(
    execution: Execution, iterator: Iterator[Any], at_most: int | None
) -> list[Part] | None:
    """Returns the parts of one call; None after a fault of the check.

    Args:
      execution: Takes the steps.
      iterator: Gives the batches.
      at_most: Number of steps; None for a model that takes one a call.
    """
    parts: list[Part] | None = or_plain(
        f"the check of {'a step' if at_most is None else 'several steps in one call'}",
        lambda: (
            execution.take_one(iterator)
            if at_most is None
            else execution.take(iterator, at_most)
        ),
        lambda: None,
        execution.give_up,
    )
    return parts
