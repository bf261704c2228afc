"""Checks a dataset of any supported kind."""

import warnings
from collections.abc import Iterator, Sequence
from typing import Any, Literal

import keras
import numpy as np
import tensorflow as tf

from tfsafe import _args, _calls
from tfsafe._report import caller
from tfsafe.data.checks import pipeline, policies
from tfsafe.data.checks.policies import Policy
from tfsafe.data.faults.explain import Origin
from tfsafe.data.faults.survey import Survey, containers
from tfsafe.data.faults.tally import Limits
from tfsafe.data.sources import structure
from tfsafe.errors import NumericsError


@_calls.answered()
def check_finite(
    dataset: Any,
    *parts: Any,
    policy: Literal["raise", "drop", "replace", "report"] = "raise",
    value: float | str = 0.0,
    dtype: Any = None,
    num_classes: int | None = None,
    batched: bool | None = None,
) -> Any:
    """Finds non-finite values and text in data, before they reach a model.

    One NaN among a million values makes the loss, the gradients and every weight NaN.
    This check names the row, the feature and the value, and suggests a fix. It finds
    NaN, infinity, None, numbers beyond the model's dtype, text in a column of
    numbers, a header row read as data, and labels that name none of the classes. The
    guide "Clean the data" in the documentation lists what it notes besides.

    Examples:
      >>> import numpy as np
      >>> from tfsafe.data import check_finite
      >>> x = {"age": np.array([31.0, np.nan, 27.0]), "sex": np.array(["f", "m", "f"])}
      >>> y = np.array([0, 1, 1])
      >>> print(check_finite((x, y), policy="report"))
      1 problem and no notes in 3 rows of 3 features.
      <BLANKLINE>
        feature   dtype    count  NaN  Inf  min  max  constant  first row
        x["age"]  float64      3    1    0   27   31                    1
        x["sex"]  str          3    0    0
        y         int64        3    0    0    0    1
      <BLANKLINE>
      NaN in `x["age"]`, first in row 1.
        what:  1 of 3 values, the first is nan at index (1,); float64
        why:   a NaN is most often an empty cell, or text where a number was asked for,
               when a file is read. One such value makes the loss, the gradients and
               every weight NaN.
        fix:   x, y = check_finite((x, y), policy="drop")
               removes such rows, of x and y alike; policy="replace" writes value=0.0 or
               value="mean" in their place.

    Args:
      dataset: Arrays, tensors, DataFrames, Series or lists of numbers, alone or in
        tuples such as `(x, y, sample_weight)`, lists and dicts, with the same number of
        rows; a `tf.data.Dataset`; a `keras.utils.PyDataset`; or a generator of batches.
      *parts: Not accepted; the error suggests to pass `(x, y)`.
      policy: `"raise"`; `"drop"` the rows from all parts, and warn; `"replace"` the
        values by `value`, and warn; or `"report"`: return a `DataReport`.
      value: For "replace": a number; or "mean", the mean of the other values of the
        column, for which a `tf.data.Dataset` is read once beforehand.
      dtype: Floating dtype that the model computes in. If None, that of Keras' global
        dtype policy.
      num_classes: Number of classes, where `y` holds integer labels.
      batched: Whether the first axis of the elements of a `tf.data.Dataset` runs over
        rows. If None, it does where `batch` leaves its size open; behind
        `batch(..., drop_remainder=True)` say True.

    Returns:
      For the policy "report" a `DataReport`. Otherwise `dataset` itself if it is in
      memory and has no faults, and else the same kind of object. A `tf.data.Dataset`, a
      `PyDataset` and a generator are checked batch by batch while they are read, all
      others at once.

    Raises:
      tfsafe.NumericsError: For the policy "raise"; for "drop" if no row would be left;
        for "replace" if no number can help, as for a header. While a `tf.data.Dataset`
        is read, TensorFlow makes a `tf.errors.UnknownError` with the same text of it.
      TypeError: If `dataset` is None or anything else, or holds a traced tensor; if
        there is more than one positional argument.
      ValueError: If the parts differ in their number of rows, or an argument is out of
        its range.

    Numerics:
      text in tf.data    judged in the report only; a pipeline lets it pass
      complex            its real and its imaginary part, one by one
      sparse             only the values that are stored
    """
    if parts:
        raise TypeError(
            "`check_finite` takes one dataset; several parts go into one tuple. "
            f"Received: {len(parts) + 1} positional arguments. Write "
            "`x, y = check_finite((x, y))`."
        )
    if dataset is None:
        raise TypeError(
            "`check_finite` takes arrays, tensors, DataFrames or a pipeline. Received: "
            "dataset=None. Does the function that loads the data end in `return`?"
        )
    limits = Limits(_dtype(dtype), _classes(num_classes))
    chosen = policies.policy_of(policy, value, limits)
    if isinstance(dataset, tf.data.Dataset):
        return pipeline.checked(
            dataset, chosen, batched, _origin(("dataset",), "dataset")
        )
    if batched is not None:
        raise ValueError(
            "`batched` is for the elements of a tf.data.Dataset. Received: "
            f"batched={batched!r} for {type(dataset).__name__}. Leave it out."
        )
    if isinstance(dataset, keras.utils.PyDataset | Iterator):
        return checked(dataset, chosen, _origin(("dataset",), "dataset"))
    leaves = structure.parts(dataset)
    if not leaves and isinstance(dataset, dict | tuple | list) and len(dataset):
        raise TypeError(
            "`check_finite` takes arrays, tensors, DataFrames or a pipeline. Received: "
            f"dataset={dataset!r:.80}, without any. Does the function that loads the "
            "data end in `return`?"
        )
    is_frame = any(hasattr(part, "iloc") for _, part in leaves)
    names = tuple(structure.roles(dataset))
    origin = _origin(names, "frame" if is_frame else "array")
    return policies.checked(dataset, chosen, origin)


def _origin(names: Sequence[str], kind: str) -> Origin:
    return Origin(tuple(names), kind, caller.user_call(name="check_finite"))


def _dtype(dtype: Any) -> np.dtype:
    given = keras.config.dtype_policy().compute_dtype if dtype is None else dtype
    found = tf.as_dtype(given)
    if found not in _args.FLOATS:
        raise ValueError(
            "`dtype` must be the floating dtype that the model computes in: float16, "
            f"bfloat16, float32 or float64. Received: dtype={dtype!r}."
        )
    return np.dtype(found.as_numpy_dtype)


def _classes(num_classes: int | None) -> int | None:
    if num_classes is None:
        return None
    if isinstance(num_classes, bool) or not hasattr(num_classes, "__index__"):
        raise TypeError(
            "`num_classes` must be an integer or None. Received: "
            f"num_classes={num_classes!r}."
        )
    if int(num_classes) < 1:
        raise ValueError(
            f"`num_classes` must be at least 1. Received: num_classes={num_classes}."
        )
    return int(num_classes)


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
