"""Turns traced graphs into plain data, and plain data into graphs that can be emitted.

A graph of a capsule is read like a traced one: its bodies of loops, branches and calls
are known by name, and its operations have the places that they had in the program.
"""

import dataclasses
import re
from collections.abc import Collection, Iterable, Mapping, Sequence
from typing import Any

import tensorflow as tf

from tfsafe._report.records import Site, from_dict
from tfsafe.debugging.capsule.archive import Reader, Writer
from tfsafe.graph import (
    Place,
    bodies,
    family,
    is_call,
    is_drawn,
    locate_all,
    note_bodies,
    note_order,
    note_places,
)

# They name Python functions and operations of the trace, or devices of the machine.
_LEFT_OUT = ("_class", "_gradient_op_type", "_gradient_op_type_v2")


def refused_in(root: tf.Graph, drawn: Mapping[int, set[str]]) -> str:
    """Returns the operations in a graph and in what it calls that may not be saved.

    Args:
      root: The graph.
      drawn: The names of the operations whose outputs are known, by `id` of the graph.

    Returns:
      Their types, in words; empty if there are none.

    Raises:
      UnreadableError: If a function is not known in Python.
    """
    refused = {
        kind
        for graph in family(root)
        for kind in refused_operations(graph, drawn.get(id(graph), ()))
    }
    return ", ".join(sorted(refused - DROPPED))


class GraphWriter:
    """Writes a graph and the graphs of all functions that it calls.

    Args:
      root: The graph.
      writer: Gets the parts.
    """

    def __init__(self, root: tf.Graph, writer: Writer):
        self._writer = writer
        self.graphs = list({id(each): each for each in family(root)}.values())
        self.numbers = {id(each): number for number, each in enumerate(self.graphs)}
        self._places: dict[Place, int] = {}

    def records(self) -> list[dict[str, Any]]:
        """Writes the graphs; returns a record of each."""
        return [self._record(each) for each in self.graphs]

    def places(self) -> list[Any]:
        """Returns the places that the records refer to, by number."""
        return [
            [place.site and dataclasses.asdict(place.site), *place[1:]]
            for place in self._places
        ]

    def scopes(self) -> set[str]:
        """Returns the name scopes of the places."""
        return {place.scope for place in self._places}

    def _record(self, graph: tf.Graph) -> dict[str, Any]:
        definition = graph.as_graph_def(add_shapes=True)
        definition.ClearField("library")
        _strip(definition)
        self._writer.graph(self.numbers[id(graph)], definition.SerializeToString())
        return {
            "inputs": [_tensor(each) for each in graph.inputs],
            "outputs": [each.name for each in graph.outputs],
            "functions": {
                name: self.numbers[id(body)]
                for op in graph.get_operations()
                if is_call(op)
                for name, body in zip(_names(op), bodies(op), strict=True)
            },
            "places": self._places_in(graph),
        }

    def _places_in(self, graph: tf.Graph) -> dict[str, int]:
        shown = filter(_is_shown, graph.get_operations())
        return {
            name: self._places.setdefault(place, len(self._places))
            for name, place in locate_all(shown, self.graphs).items()
        }


def _is_shown(op: tf.Operation) -> bool:
    """Returns whether an operation may be part of a finding: its place is not free."""
    floats = [each.dtype.is_floating or each.dtype.is_complex for each in op.outputs]
    return any(floats) or bool(op.inputs and not op.outputs)


def _tensor(tensor: tf.Tensor) -> list[Any]:
    shape = None if tensor.shape.rank is None else tensor.shape.as_list()
    return [tensor.name, shape]


def _names(op: tf.Operation) -> list[str]:
    """Returns the names of the functions of a call, in the order of `bodies`."""
    names = [
        each.func.name for each in op.node_def.attr.values() if each.HasField("func")
    ]
    if "branches" in op.node_def.attr:
        names += [each.name for each in op.node_def.attr["branches"].list.func]
    return names


def _strip(definition: Any) -> None:
    """Removes what names the machine or the process, and what prints."""
    dropped = {each.name for each in definition.node if each.op in DROPPED}
    kept = [each for each in definition.node if each.name not in dropped]
    for node in kept:
        node.device = ""
        for name in _LEFT_OUT:
            node.attr.pop(name, None)
        inputs = [each for each in node.input if each.lstrip("^") not in dropped]
        del node.input[:]
        node.input.extend(inputs)
    if dropped:
        nodes = [type(each).FromString(each.SerializeToString()) for each in kept]
        del definition.node[:]
        definition.node.extend(nodes)


def graphs_of(reader: Reader, step: Any) -> list[tf.Graph]:
    """Reads the graphs of a capsule, the root first.

    Args:
      reader: The file.
      step: The record of the step.

    Returns:
      The graphs, with their functions and places.

    Raises:
      ValueError: If a graph holds an operation that a capsule may not hold, or cannot
        be read.
    """
    records = step["graphs"]
    drawn: dict[int, set[str]] = {}
    for number, name, _ in step["drawn"]:
        drawn.setdefault(number, set()).add(name)
    graphs = [
        _graph(reader, i, record, drawn.get(i, set()))
        for i, record in enumerate(records)
    ]
    known = [_read_place(each) for each in step["places"]]
    for graph, record in zip(graphs, records, strict=True):
        functions = {name: graphs[int(i)] for name, i in record["functions"].items()}
        note_bodies(graph, functions)
        note_places(graph, {op: known[int(i)] for op, i in record["places"].items()})
    _refuse_cycles(graphs[0])
    return graphs


def _refuse_cycles(root: tf.Graph) -> None:
    try:
        family(root)
    except RecursionError:
        raise ValueError("The capsule holds functions that call each other.") from None


def _read_place(record: Sequence[Any]) -> Place:
    site, *rest = record
    return Place(site and from_dict(Site, site), *rest)


def _graph(reader: Reader, number: int, record: Any, drawn: set[str]) -> tf.Graph:
    definition = tf.compat.v1.GraphDef()
    data = reader.graph(number)
    try:
        definition.ParseFromString(data)
    # Protobuf's `DecodeError`, which is none of TensorFlow's names.
    except Exception as error:
        raise ValueError(f"A graph of the capsule cannot be read: {error}") from None
    definition.ClearField("library")
    _refuse(refused(each.op for each in definition.node))
    graph = tf.Graph()
    with graph.as_default():
        try:
            tf.graph_util.import_graph_def(definition, name="")
        except (ValueError, tf.errors.OpError) as error:
            raise ValueError(
                f"TensorFlow {tf.__version__} cannot read a graph of the capsule: "
                f"{error}"
            ) from None
    _refuse(refused_operations(graph, drawn))
    note_order(graph, (each.name for each in definition.node))
    tensor = graph.get_tensor_by_name
    graph.inputs = [tensor(name) for name, _ in record["inputs"]]
    for each, (_, shape) in zip(graph.inputs, record["inputs"], strict=True):
        each.set_shape(shape)
    graph.outputs = [tensor(name) for name in record["outputs"]]
    return graph


def _refuse(types: Sequence[str]) -> None:
    if types:
        raise ValueError(
            f"The capsule holds operations that it may not hold: {', '.join(types)}. "
            "It was not written by `error.save`, and is not replayed."
        )


def structure_of(result: Any) -> Any:
    """Returns the structure of a result as plain data, tensors by their number."""
    flat = tf.nest.flatten(result, expand_composites=True)
    numbers = iter(range(len(flat)))
    if len(flat) != len(tf.nest.flatten(result)):
        return {"list": [next(numbers) for each in flat if each is not None]}
    numbered = [None if each is None else next(numbers) for each in flat]
    return _plain(tf.nest.pack_sequence_as(result, numbered))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {"dict": [[str(key), _plain(each)] for key, each in value.items()]}
    if isinstance(value, list | tuple):
        return {"list": [_plain(each) for each in value]}
    return value


def structured(structure: Any, outputs: Sequence[Any]) -> Any:
    """Returns outputs in their structure."""
    if isinstance(structure, dict) and "dict" in structure:
        return {key: structured(each, outputs) for key, each in structure["dict"]}
    if isinstance(structure, dict):
        return [structured(each, outputs) for each in structure["list"]]
    return None if structure is None else outputs[int(structure)]


# Types without state that reach files, the process, Python or other machines all the
# same, or take a resource that a capsule does not have.
_REFUSED = re.compile(
    r"Abort|File|Reader|PyFunc|ImmutableConst|Vocab|Proto|Debug|^Copy|Dataset|Lookup"
    r"|InitializeTable|Queue|Barrier|Accumulator|Sdca|TPU|Prelinearize|Infeed|Outfeed"
    r"|^Xla|CompressElement|BatchFunction|SymbolicGradient|Summary|Restore|Save|Checkpoint"
    r"|^MapDefun|Optional|SessionHandle|SparseCore|Remote|Collective|Nccl|^Recv|^Send"
    r"|^For$|^Enter$|^NextIteration$|^Exit$|^Switch$|^Merge$|^Ref"
)
# Types with state that change variables, draw numbers or call the functions of the
# graph, and nothing else.
_STATEFUL = re.compile(
    r"Assert|Assign(Add|Sub)?VariableOp|Case|CheckNumerics(V2)?|CudnnRNN\w*|DeviceIndex"
    r"|DisableCopyOnRead|Empty|GuaranteeConst|If|While|StatefulPartitionedCall"
    r"|Resource(Sparse)?Apply\w+|Resource(Scatter|Gather)\w*|ResourceStridedSliceAssign"
    r"|ResourceCountUpTo|ReadVariableOp|VarIsInitializedOp|VariableShape"
    r"|Multinomial|(Parameterized)?TruncatedNormal|RandomCrop|RandomGamma"
    r"|RandomPoisson(V2)?|RandomShuffle|RandomStandardNormal|RandomUniform(Int)?"
    r"|Rng(ReadAndSkip|Skip)|Stateful(RandomBinomial|StandardNormal(V2)?)"
    r"|Stateful(TruncatedNormal|Uniform(FullInt|Int)?)|StatelessRandomGetAlg"
    r"|NonDeterministicInts|SampleDistortedBoundingBox(V2)?|\w+CandidateSampler"
    r"|TensorArray\w*V3|TensorArrayGradWithShape"
)
_INPUTS = frozenset({"Placeholder"})
# Printing is not replayed, and is not saved.
DROPPED = frozenset({"PrintV2"})


def refused(types: Iterable[str]) -> list[str]:
    """Returns the types that no graph of a capsule may have, by their names.

    Asked before a graph is imported: TensorFlow runs some operations to infer shapes.
    """
    return sorted({each for each in types if not _may_be_imported(each)})


def refused_operations(graph: tf.Graph, drawn: Collection[str] = ()) -> list[str]:
    """Returns the types in a graph that a capsule may not hold.

    Args:
      graph: The graph.
      drawn: Names of the operations that are not run, because what they drew is known.
    """
    return sorted({
        op.type
        for op in graph.get_operations()
        if not (_is_allowed(op) or (op.name in drawn and is_drawn(op)))
    })


def _is_allowed(op: tf.Operation) -> bool:
    if op.op_def.is_stateful and op.type not in _INPUTS:
        return bool(_STATEFUL.fullmatch(op.type))
    return _may_be_imported(op.type)


def _may_be_imported(kind: str) -> bool:
    # An operation of a library that a program loads is none of TensorFlow's.
    is_known = hasattr(tf.raw_ops, kind)
    return is_known and (bool(_STATEFUL.fullmatch(kind)) or not _REFUSED.search(kind))
