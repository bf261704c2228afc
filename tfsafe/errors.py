"""Defines the error that carries the findings of a check."""

import dataclasses
import os
import traceback
import weakref
from collections.abc import Sequence
from typing import Any, Protocol

from tfsafe._report import caller, html, text as _text
from tfsafe._report.finding import Finding as Finding, explained
from tfsafe._report.records import (
    Link as Link,
    Picture as Picture,
    Sample as Sample,
    Site as Site,
    TensorStats as TensorStats,
)


class Capsule(Protocol):
    """Writes what is needed to replay the call that failed."""

    @property
    def refusal(self) -> str:
        """Why it cannot be; empty if it can."""

    def write(
        self, path: str | os.PathLike[str], error: "NumericsError", max_bytes: int
    ) -> None:
        """Writes the file; raises ValueError if the call cannot be saved."""


# What `last_error` makes its error of. The error is not kept alive: its traceback holds
# the model.
_LAST: list[
    tuple["weakref.ref[NumericsError]", str, tuple[Finding, ...], dict[str, Any]]
] = []
# Not attributes: what `last_error` keeps must not hold the model either.
_CAPSULES: "weakref.WeakKeyDictionary[NumericsError, Capsule]" = (
    weakref.WeakKeyDictionary()
)
_NO_CAPSULE = (
    "This error has no traced step to save. Eager code has none: put `@tf.function` on "
    "the step, or train without `run_eagerly`. What `last_error` or a pickle gives is "
    "a copy: save the error itself, where it is caught. Received: {}"
)
_AGAIN = (
    '`error.save("nan.zip")`, or `tfsafe run --capsule nan.zip`, saves it for '
    "`tfsafe replay nan.zip`: {} s as here, after the start of TensorFlow and tracing."
)
_LARGEST = 2**31
_IPYTHON = f"{os.sep}IPython{os.sep}"


def last_error() -> "NumericsError | None":
    """Returns the last `NumericsError` of this process, without its traceback.

    A notebook shows it as a page with figures, whether it ended a cell, was caught or
    became a warning.

    Returns:
      A copy of the error; None if there was none.

    Examples:
      >>> import tfsafe
      >>> error = tfsafe.NumericsError("1 of 3 values is NaN.")
      >>> print(tfsafe.last_error())
      1 of 3 values is NaN.
    """
    if not _LAST:
        return None
    ((reference, text, findings, fields),) = _LAST
    original = reference()
    error = NumericsError(text, findings)
    vars(error).update(fields)
    # Of the one that was raised, while it is alive.
    _LAST[:] = [(reference, text, findings, fields)]
    if original is not None and original in _CAPSULES:
        error.attach(_CAPSULES[original])
    return error


class NumericsError(ArithmeticError):
    """Raised when a numeric check finds NaN or Inf.

    `str(error)` is the explanation: what, where, why, and what to write instead. The
    same is data in `findings`, and a page with figures by `to_html`.

    Examples:
      >>> import tensorflow as tf
      >>> import tfsafe
      >>> try:
      ...     tfsafe.checked(tf.math.reciprocal)(tf.constant([1.0, 0.0]))
      ... except tfsafe.NumericsError as error:
      ...     print(error.findings[0].cause)
      the reciprocal of 1 zero (at (1,)).

    Attributes:
      findings: The findings, first cause first. Empty where the error reports a
        count rather than a place.
      reached: Names of the non-finite results: outputs, then variables.
      step: Number of the training step that failed, from 0; None where it is not known.
      optimizers: Name, step and learning rate of each optimizer, where the step has
        several, such as that of a GAN.
      epoch: Its epoch, from 0; None where it is not known.
      batch: Number of its batch in the epoch or call, from 0; None where not known.
      learning_rate: That of the optimizer in this step; None where it is not known.
      loss_scale: That of a `LossScaleOptimizer`; None without one.
      inputs: The batch, or the arguments of the call, by name.
      facts: Versions, device, dtype policy, optimizer, date and command, by name.
      layers: Name, class and health of each layer of the model that failed: `finite`,
        `first`, `reached` or `untouched`. Empty without a Keras model.
      sample: The row of the batch that failed, as plain data for the page; None where
        the row is not known.
      losses: The losses of up to 50 steps before the one that failed, oldest first.
      gradient_norms: The global norms of the gradients in these steps; empty outside
        of `fit` and `train_on_batch`.
      largest_updates: Largest changes of a weight in these, at `domain` and `full`.
    """

    def __init__(
        self,
        message: str,
        findings: Sequence[Finding] = (),
        *,
        reached: Sequence[str] = (),
    ):
        super().__init__(message)
        self.ag_pass_through = True  # AutoGraph 2.21 raises it as it came.
        self.findings = tuple(findings)
        self.reached = tuple(reached)
        self.step: int | None = None
        self.epoch: int | None = None
        self.batch: int | None = None
        self.learning_rate: float | None = None
        self.optimizers: tuple[tuple[str, int, float], ...] = ()
        self.loss_scale: float | None = None
        self.inputs: dict[str, Any] = {}
        self.losses: tuple[float, ...] = ()
        self.gradient_norms: tuple[float, ...] = ()
        self.largest_updates: tuple[float, ...] = ()
        self.facts: dict[str, str] = {}
        self.layers: tuple[tuple[str, str, str], ...] = ()
        self.sample: Sample | None = None
        self._remember()

    def explain(self, *, chain: bool = False, color: bool | None = None) -> str:
        """Returns the message, with more of it than `str(error)` on request.

        Args:
          chain: Whether to add the propagation path of the first finding, one line a
            step, and the measured trap that is most like it.
          color: Whether to use the colours of a terminal. If None, they are used where
            the standard output is a terminal and `NO_COLOR` is not set.
        """
        first = self.findings[0] if chain and self.findings else None
        return explained(str(self), first, color)

    def to_html(self, path: str | os.PathLike[str] | None = None) -> str:
        """Returns the error as a web page, and writes it to a file if one is named.

        It has the findings, the source around their lines, pictures of the tensors, and
        the propagation path. It is one file that loads nothing, in light and dark.

        Args:
          path: File to write, replaced if it exists.

        Returns:
          The page.
        """
        return html.write(
            html.of_findings(self.findings, str(self), context=self._context()), path
        )

    def save(self, path: str | os.PathLike[str], *, max_bytes: int = _LARGEST) -> None:
        """Writes a capsule: a zip file from which the failure can be replayed.

        The file holds the traced step as a graph, the batch, the values of the
        variables and seeds before the step, versions, and the finding as JSON.
        `tfsafe replay nan.zip` and `tfsafe.debugging.replay` find the same operation
        without the script and the data, on another machine too. It holds neither
        pickles nor Python of the program, but the batch and the weights, unencrypted.

        Args:
          path: File to write, replaced if it exists.
          max_bytes: Largest size of the arrays in it.

        Raises:
          ValueError: If the call cannot be saved: it was eager, it ran on several
            replicas, it uses operations that call Python or read files, or it is
            larger than `max_bytes`.

        Examples:
          >>> import tempfile
          >>> import tensorflow as tf
          >>> import tfsafe
          >>> path = tempfile.mkdtemp() + "/nan.zip"
          >>> @tfsafe.checked
          ... @tf.function
          ... def logarithm(x):
          ...     return tf.math.log(x)
          >>> try:
          ...     logarithm(tf.constant([1.0, -1.0]))
          ... except tfsafe.NumericsError as error:
          ...     error.save(path)
          >>> print(tfsafe.debugging.replay(path).findings[0].cause)
          log of 1 negative number (at (1,)).
        """
        if self not in _CAPSULES:
            raise ValueError(_NO_CAPSULE.format(str(self).partition("\n")[0]))
        _CAPSULES[self].write(path, self, max_bytes)

    def attach(self, capsule: Capsule, seconds: float | None = None) -> None:
        """Keeps what `save` writes.

        Args:
          capsule: What writes it.
          seconds: How long a replay took; None adds no line.
        """
        _CAPSULES[self] = capsule
        if seconds is not None and not capsule.refusal:
            words = _AGAIN.format(f"{seconds:.{int(seconds < 1)}f}")
            self.args = ("\n".join([str(self), *_text.wrapped("  again: ", words)]),)
            self._remember()

    def hide_capsule(self) -> None:
        """Removes the line of `attach` from the message: a replay has its file."""
        self.args = (str(self).partition("\n  again: ")[0],)
        self._remember()

    def add_time(self, batch: str = "batch") -> None:
        """Adds step, epoch, batch, rate and loss scale to the message."""
        parts = [
            f"{name} {number}"
            for name, number in (
                ("step", self.step),
                ("epoch", self.epoch),
                (batch, self.batch),
            )
            if number is not None
        ]
        parts += [
            f"step {step} of {name} (learning rate {rate:.4g})"
            for name, step, rate in self.optimizers
        ]
        if self.learning_rate is not None:
            parts.append(f"learning rate {self.learning_rate:.4g}")
        if self.loss_scale is not None:
            parts.append(f"loss scale {self.loss_scale:.4g}")
        if not parts:
            return
        self._insert("  when:  ", ", ".join(parts))

    def add_call(self, number: int) -> None:
        """Adds the number of the call of a function, from 1, to the message."""
        self._insert("  when:  ", f"call {number} of this function")

    def add_suggestion(self, words: str) -> None:
        """Puts a suggestion in words before that of the first finding, once."""
        first = self.findings[0]
        if words not in first.suggestion:
            code = first.suggested_code
            rest = f" Otherwise {code} {first.suggestion}" if code else ""
            self.change_first(suggested_code="", suggestion=f"{words}{rest}")

    def add_cause(self, words: str) -> None:
        """Adds a sentence to the cause of the first finding, once."""
        first = self.findings[0]
        if words not in first.cause:
            self.change_first(cause=f"{first.cause} {words}")

    def change_first(self, **fields: Any) -> None:
        """Replaces fields of the first finding, in the message as well."""
        first, *others = self.findings
        changed = dataclasses.replace(first, **fields)
        self.args = (str(self).replace(str(first), str(changed), 1),)
        self.findings = (changed, *others)
        self._remember()

    def add_source(self, finding: Finding, words: str) -> None:
        """Puts the operation that made the values before the argument with them.

        Args:
          finding: The operation, in the functions that make the data.
          words: What it was called with, if that is known.
        """
        rest = str(self).removeprefix(str(self.findings[0]))
        self.findings = (finding, *self.findings)
        self.args = (f"{finding}{rest}",)
        if words:
            self._insert("  data:  ", words)
        self._remember()

    def add_past(
        self,
        losses: Sequence[float],
        norms: Sequence[float],
        updates: Sequence[float],
        words: str,
    ) -> None:
        """Adds the numbers of the steps before to the message, and what they show."""
        self.losses = tuple(losses)
        self.gradient_norms, self.largest_updates = tuple(norms), tuple(updates)
        for name, numbers in list(self._past().items())[1:]:
            reach = " to ".join(dict.fromkeys(f"{f(numbers):.4g}" for f in (min, max)))
            words += f" {name.capitalize()} {_text.sparkline(numbers)} {reach}."
        self._insert("  since: ", f"{_text.sparkline(losses)} {words}")

    def _past(self) -> dict[str, tuple[float, ...]]:
        """Returns the numbers of the steps before, by what they are."""
        found = {
            "loss": self.losses,
            "gradient norm": self.gradient_norms,
            "largest update": self.largest_updates,
        }
        return {name: numbers for name, numbers in found.items() if len(numbers) > 1}

    def _insert(self, head: str, words: str) -> None:
        """Puts a line before the reach, in place of an earlier one."""
        self.args = (_text.with_line(str(self), head, words, before="  reach:"),)
        self._remember()

    def _remember(self) -> None:
        # Not the error itself, whose traceback would keep the model alive.
        _LAST[:] = [(weakref.ref(self), str(self), self.findings, vars(self))]

    def _context(self) -> html.Context:
        return html.Context(self.facts, self.layers, self.sample, self._past())

    def _repr_html_(self) -> str:
        """Shows the findings in a notebook."""
        return html.fragment_of_findings(self.findings, str(self), self._context())

    def _render_traceback_(self) -> list[str]:
        """Returns the traceback that IPython shows: the user's lines, then the text."""
        frames = [
            frame
            for frame in traceback.extract_tb(self.__traceback__)
            if caller.is_user_file(frame.filename)
            and _IPYTHON not in frame.filename
            and not (frame.line or "").startswith("get_ipython().run_cell_magic(")
        ]
        lines = ["Traceback (most recent call last):"]
        for frame in frames:
            site = Site(frame.filename, frame.lineno or 0, frame.name, frame.line or "")
            lines.append(f"  {site}")
        return [*lines, f"tfsafe.NumericsError: {self.explain()}"]

    # BaseException pickles `args` alone: the findings would be lost on the way back
    # from a worker process.
    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (str(self), self.findings), vars(self)
