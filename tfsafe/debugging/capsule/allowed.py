"""Lists the operations that a capsule may hold: computation, variables, randomness."""

import re
from collections.abc import Collection, Iterable

import tensorflow as tf

from tfsafe.graph import is_drawn

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
