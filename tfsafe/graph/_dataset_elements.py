"""Runs the functions of datasets again, one element at a time.

TensorFlow runs them inside its kernels. AutoGraph makes `for x in dataset` a scan of
the dataset, cut short by `break`, and a reduction.
"""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import tensorflow as tf

from tfsafe.graph import _dataset_functions

_TESTS = {"FilterDataset", "ParallelFilterDataset", "TakeWhileDataset"}
_MAPS = {"MapDataset", "ParallelMapDataset", "ParallelMapDatasetV2", "ScanDataset"}
# They give the elements of their first input, in its order.
_PASS = {"AssertCardinalityDataset", "OptionsDataset", "PrefetchDataset"}
_Loops = tuple[int, ...]
_Values = Sequence[Any]


def is_reduction(op: tf.Operation) -> bool:
    """Returns whether an operation reduces a dataset by a function that is known."""
    return op.type == "ReduceDataset" and _dataset_functions.body(op) is not None


class Datasets:
    """The datasets of a replay.

    Args:
      run: Runs the graph of a function on values, in iterations of loops.
      observe: Called with the elements that a dataset from outside gives: the
        operation that asks for one, the dataset, the element, the iterations.
    """

    def __init__(
        self,
        run: Callable[[tf.Graph, _Values, _Loops], _Values],
        observe: Callable[[tf.Operation, _Values, _Values, _Loops], None],
    ):
        self._run = run
        self._observe = observe
        # By `id` of the dataset, which is kept.
        self._made: dict[int, tuple[Any, tf.Operation, _Values]] = {}

    def note(self, op: tf.Operation, inputs: _Values, outputs: _Values) -> None:
        """Notes an operation that made a dataset whose function can be run."""
        if op.type in _TESTS | _MAPS and _dataset_functions.body(op) is not None:
            (dataset,) = outputs
            self._made[id(dataset)] = dataset, op, inputs
        elif op.type in _PASS and id(inputs[0]) in self._made:
            (dataset,) = outputs
            _, *maker = self._made[id(inputs[0])]
            self._made[id(dataset)] = dataset, *maker

    def reduced(self, op: tf.Operation, inputs: _Values, loops: _Loops) -> _Values:
        """Runs a reduction; returns its outputs."""
        state: _Values = _dataset_functions.named(op, inputs)["initial_state"]
        for after, _ in self._steps(op, inputs, loops):
            state = after
        return state

    def _steps(
        self, op: tf.Operation, inputs: _Values, loops: _Loops
    ) -> Iterator[tuple[_Values, _Values]]:
        """Yields the state and the elements that an operation makes."""
        graph = _dataset_functions.body(op)
        if graph is None:
            return
        given = _dataset_functions.named(op, inputs)
        state, captured = given.get("initial_state", []), given["other_arguments"]
        size = len(state)
        inner = graph.inputs[size : len(graph.inputs) - len(captured)]
        elements = self._elements(op, given["input_dataset"], inner, loops)
        for count, element in enumerate(elements):
            inside = (*loops, count)
            values = self._run(graph, [*state, *element, *captured], inside)
            if op.type not in _TESTS:
                state = values[:size]
                yield state, values[size:]
            elif values[0]:
                yield state, element
            elif op.type == "TakeWhileDataset":
                return

    def _elements(
        self, op: tf.Operation, dataset: Any, like: Sequence[tf.Tensor], loops: _Loops
    ) -> Iterator[_Values]:
        """Yields the elements of a dataset that an operation asks for."""
        if id(dataset) in self._made:
            _, maker, inputs = self._made[id(dataset)]
            for _, element in self._steps(maker, inputs, loops):
                yield element
            return
        specs = tuple(tf.TensorSpec(each.shape, each.dtype) for each in like)
        from_outside = tf.data.experimental.from_variant(dataset, specs)
        for count, element in enumerate(from_outside):
            self._observe(op, [dataset], element, (*loops, count))
            yield element
