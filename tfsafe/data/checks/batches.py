"""Checks batches that Python makes: a keras PyDataset, or a generator."""

import warnings
from collections.abc import Iterator
from typing import Any

import keras

from tfsafe.data.checks import policies
from tfsafe.data.checks.policies import Policy
from tfsafe.data.faults.explain import Origin
from tfsafe.data.faults.survey import Survey, containers
from tfsafe.errors import NumericsError


def checked(batches: Any, policy: Policy, origin: Origin) -> Any:
    """Returns batches that are checked when they are read, or the report on them."""
    if policy.name == "report":
        return _report(batches, policy, origin)
    if policy.value == "mean" and policy.name == "replace":
        raise ValueError(
            'value="mean" needs a dataset that can be read twice: an array or a '
            "tf.data.Dataset. Received: batches made by Python. Give a number."
        )
    if isinstance(batches, Iterator):
        return _generated(batches, policy, origin)
    return CheckedPyDataset(batches, policy, origin)


def _report(batches: Any, policy: Policy, origin: Origin) -> Any:
    survey = Survey(policy.limits, origin)
    count = len(batches) if hasattr(batches, "__len__") else None
    items = batches if count is None else (batches[i] for i in range(count))
    for number, batch in enumerate(items):
        survey.add(batch, number)
    return survey.report()


def _generated(batches: Iterator[Any], policy: Policy, origin: Origin) -> Iterator[Any]:
    before = 0
    for number, batch in enumerate(batches):
        rows = containers(batch)[0][1].rows
        try:
            yield policies.checked(batch, policy, origin, number, before)
        except NumericsError:
            if policy.name != "drop":
                raise
            warnings.warn(
                f"check_finite dropped all {rows} rows of batch {number}, "
                "and so the batch.",
                stacklevel=2,
            )
        before += rows


class CheckedPyDataset(keras.utils.PyDataset):
    """A PyDataset whose batches are checked when `fit` reads them."""

    def __init__(self, inner: Any, policy: Policy, origin: Origin):
        super().__init__(
            workers=inner.workers,
            use_multiprocessing=inner.use_multiprocessing,
            max_queue_size=inner.max_queue_size,
        )
        self.inner, self.policy, self.origin = inner, policy, origin

    def __len__(self) -> int:
        return len(self.inner)

    def __getitem__(self, index: int) -> Any:
        batch = self.inner[index]
        # `fit` reads batches in any order; their sizes are not known beforehand.
        return policies.checked(batch, self.policy, self.origin, index, None)

    def on_epoch_begin(self) -> None:
        """Calls the same method of the dataset."""
        self.inner.on_epoch_begin()

    def on_epoch_end(self) -> None:
        """Calls the same method of the dataset."""
        self.inner.on_epoch_end()
