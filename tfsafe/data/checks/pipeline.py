"""Runs the check as a stage of a `tf.data` pipeline."""

from collections.abc import Sequence
from typing import Any

import numpy as np
import tensorflow as tf

from tfsafe.data.checks import policies
from tfsafe.data.checks.policies import Policy
from tfsafe.data.faults import element_masks, severity
from tfsafe.data.faults.explain import Origin
from tfsafe.data.faults.report import DataReport
from tfsafe.data.faults.survey import Survey, require_labels
from tfsafe.data.sources import structure

# Elements without a batch axis are joined, so that Python reads many at once.
_JOINED_VALUES = 1 << 20


def checked(
    dataset: tf.data.Dataset, policy: Policy, batched: bool | None, origin: Origin
) -> Any:
    """Returns a dataset that is checked while it is read, or the report on it.

    Args:
      dataset: A dataset of tensors in tuples and dicts.
      policy: What to do.
      batched: Whether the first axis of an element runs over rows; None infers it from
        the shapes.
      origin: The user's call.

    Returns:
      A dataset with the same elements except for the policy's changes; a `DataReport`
      for the policy "report".
    """
    stage = Stage(dataset, policy, batched, origin)
    return stage.report() if policy.name == "report" else stage.dataset()


class Stage:
    """The check of one dataset.

    Attributes:
      is_batched: Whether the first axis of an element runs over rows.
    """

    def __init__(
        self,
        dataset: tf.data.Dataset,
        policy: Policy,
        batched: bool | None,
        origin: Origin,
    ):
        self._dataset, self._policy, self._origin = dataset, policy, origin
        spec = dataset.element_spec
        for path, part in structure.parts(spec):
            if isinstance(part, tf.data.DatasetSpec):
                raise TypeError(
                    "check_finite takes a dataset of tensors. Received: a dataset "
                    f"whose {path} is a dataset, as `window` makes them. Join the "
                    "windows first: dataset.flat_map(lambda w: w.batch(size))."
                )
        # The spec of a None in an element has no shape.
        leaves = (
            part if hasattr(part, "shape") else None
            for _, part in structure.parts(spec)
        )
        self._spec = structure.rebuilt(spec, leaves)
        self._parts = structure.parts(self._spec)
        require_labels([path for path, _ in self._parts], policy.limits)
        self.is_batched = _is_batched(self._parts) if batched is None else batched
        self._joined = _without_columns(self._parts)
        self._fills: dict[str, np.ndarray] = {}

    def report(self) -> DataReport:
        """Reads the dataset once."""
        return self._read().report()

    def dataset(self) -> tf.data.Dataset:
        """Returns the dataset with the check applied."""
        limits = self._policy.limits
        if not any(
            element_masks.can_be_bad(s.dtype, path, limits) for path, s in self._parts
        ):
            return self._dataset
        if self._policy.name == "replace":
            self._fills = self._numbers()
        start = (np.int64(0), np.int64(0), np.int64(0))
        step = tf.autograph.experimental.do_not_convert(self._step)
        flowing = self._dataset.scan(start, step)
        if self._policy.name == "drop":
            flowing = flowing.filter(lambda keep, _: keep)
            return flowing.map(lambda _, element: element)
        count = self._dataset.cardinality()
        if count == tf.data.UNKNOWN_CARDINALITY:
            return flowing
        return flowing.apply(tf.data.experimental.assert_cardinality(count))

    def _read(self) -> Survey:
        if self._dataset.cardinality() == tf.data.INFINITE_CARDINALITY:
            raise ValueError(
                "check_finite reads the whole dataset for a report or a mean. "
                "Received: a dataset without end. Take a part of it: "
                "check_finite(dataset.take(1000), ...)."
            )
        survey = self._survey()
        size = 0 if self.is_batched else _batch_size(self._parts)
        if size:
            for element in self._dataset.batch(size):
                survey.add(element)
            return survey
        for number, element in enumerate(self._dataset):
            self._add(survey, element, number, survey.rows)
        return survey

    def _numbers(self) -> dict[str, np.ndarray]:
        """Returns the replacements for faulty values, by the path of the leaf."""
        policy = self._policy
        tallies = self._read().tallies if policy.value == "mean" else {}

        def numbers(path: str) -> np.ndarray:
            if policy.value != "mean":
                return np.full(1, float(policy.value))
            columns = severity.columns(tallies[path])
            return policies.fill_values(tallies[path], columns, policy)

        found = {}
        for path, spec in self._parts:
            if spec.dtype.is_complex and policy.value == "mean":
                found[path] = numbers(f"{path}.real") + 1j * numbers(f"{path}.imag")
            elif spec.dtype.is_complex:
                found[path] = numbers(path) * (1 + 1j)
            elif spec.dtype.is_floating:
                found[path] = numbers(path)
        return found

    def _step(self, state: Any, *elements: Any) -> tuple[Any, Any]:
        """Checks one element.

        Args:
          state: Numbers of the elements, rows and faulty rows before this one.
          *elements: The element; its parts if it is a tuple.

        Returns:
          The new state, and the element; for the policy "drop" the second item is a
          pair of whether any row remains, and the element.
        """
        element = elements[0] if len(elements) == 1 else elements
        limits = self._policy.limits
        held = structure.parts(element)
        found = [element_masks.bad_values(leaf, path, limits) for path, leaf in held]
        is_bad = tf.reduce_any([
            tf.reduce_any(mask) for mask in found if mask is not None
        ])
        one = tf.constant(1, tf.int64)
        count = element_masks.row_count(held[0][1]) if self.is_batched else one

        def act() -> tuple[Any, ...]:
            faulty = tf.constant([True])
            if self.is_batched:
                rows = [
                    element_masks.faulty_rows(leaf, mask)
                    for (_, leaf), mask in zip(held, found, strict=True)
                    if mask is not None
                ]
                faulty = tf.reduce_any(tf.stack(rows), axis=0)
            flat = tf.nest.flatten([leaf for _, leaf in held], expand_composites=True)
            faulty_rows = tf.reduce_sum(tf.cast(faulty, tf.int64))
            tf.py_function(self._tell, [*state, faulty_rows, *flat], [])
            is_left = tf.logical_not(tf.reduce_all(faulty))
            return faulty_rows, is_left, self._replaced(element, held, found, faulty)

        def leave() -> tuple[Any, ...]:
            return tf.constant(0, tf.int64), tf.constant(True), element

        faulty_rows, is_left, element = tf.cond(is_bad, act, leave)
        after = (state[0] + 1, state[1] + count, state[2] + faulty_rows)
        return after, (is_left, element) if self._policy.name == "drop" else element

    def _replaced(
        self,
        element: Any,
        held: Sequence[tuple[str, Any]],
        found: Any,
        faulty: tf.Tensor,
    ) -> Any:
        """Returns the element without its faulty rows, or with other numbers."""
        is_dropped = self._policy.name == "drop" and not self.is_batched
        if self._policy.name == "raise" or is_dropped:
            return element
        new = []
        for (path, leaf), mask in zip(held, found, strict=True):
            if self._policy.name == "drop":
                new.append(element_masks.take(leaf, tf.logical_not(faulty)))
            else:
                is_hit = mask is not None and path in self._fills
                numbers = self._fills.get(path)
                new.append(
                    element_masks.fill(leaf, numbers, self._policy.limits)
                    if is_hit
                    else leaf
                )
        return structure.rebuilt(element, iter(new))

    def _tell(
        self,
        number: tf.Tensor,
        rows: tf.Tensor,
        faulty_rows: tf.Tensor,
        new_bad_rows: tf.Tensor,
        *flat: tf.Tensor,
    ) -> None:
        """Raises, or warns at the 1st, 2nd, 4th, 8th ... faulty row of a pass."""
        before, after = int(faulty_rows), int(faulty_rows) + int(new_bad_rows)
        is_told = before.bit_length() != after.bit_length()
        if self._policy.name == "drop" and not is_told:
            return
        leaves = tf.nest.pack_sequence_as(
            [spec for _, spec in self._parts], flat, expand_composites=True
        )
        # Text needs its whole column to be classified, which a batch does not have.
        numeric = (None if leaf.dtype == tf.string else leaf for leaf in leaves)
        element = structure.rebuilt(self._spec, numeric)
        survey = self._survey()
        self._add(survey, element, int(number), int(rows))
        report = survey.report()
        if self._policy.name == "raise":
            report.raise_if_bad('check_finite(dataset, policy="report")')
        if self._policy.name == "replace":
            policies.refuse_unmendable(report)
        if is_told:
            done = "dropped" if self._policy.name == "drop" else "replaced values in"
            rows_told = f"{after} rows" if after > 1 else "1 row"
            policies.tell(f"{done} {rows_told} so far", report, stacklevel=2)

    def _survey(self) -> Survey:
        return Survey(
            self._policy.limits, self._origin, self._joined, not self.is_batched
        )

    def _add(self, survey: Survey, element: Any, number: int, rows: int) -> None:
        """Adds one element, with a batch axis if it has none."""
        if not self.is_batched:
            leaves = (_with_axis(leaf) for _, leaf in structure.parts(element))
            element = structure.rebuilt(element, leaves)
        survey.add(element, number if self.is_batched else None, rows)


def _is_batched(parts: Sequence[tuple[str, Any]]) -> bool:
    """Returns whether the size of the first axis is open, as `batch` leaves it."""
    ranks = [spec.shape.rank for _, spec in parts]
    return all(ranks) and all(spec.shape[0] is None for _, spec in parts)


def _without_columns(parts: Sequence[tuple[str, Any]]) -> frozenset[str]:
    """Returns the leaves whose last axis has no fixed size, hence no features."""
    return frozenset(
        path
        for path, spec in parts
        if spec.shape.rank is None or (spec.shape.rank and spec.shape[-1] is None)
    )


def _batch_size(parts: Sequence[tuple[str, Any]]) -> int:
    """Returns the number of elements to join; 0 if their shapes may differ."""
    if not all(
        isinstance(spec, tf.TensorSpec) and spec.shape.is_fully_defined()
        for _, spec in parts
    ):
        return 0
    values = sum(spec.shape.num_elements() for _, spec in parts)
    return max(1, min(1024, _JOINED_VALUES // max(1, values)))


def _with_axis(leaf: Any) -> Any:
    if isinstance(leaf, tf.SparseTensor):
        return tf.sparse.expand_dims(leaf, 0)
    return tf.expand_dims(leaf, 0)
