"""Reads a traced function, and runs it again operation by operation.

Knows facts about each type of operation (`OP_FACTS`), which operations have an effect,
the functions that a function calls, and the line of the user that made an operation
(`locate`). A `TracedCall` is a call with its arguments and its trace, a `Replay` runs
one, an `Emission` writes a graph into another, in part differently.

May import: the modules at the root of tfsafe.

Example: `locate(op).site` is the user's line that made an operation.
"""

from tfsafe.graph._custom_gradients import is_custom
from tfsafe.graph._dataset_functions import family as dataset_family
from tfsafe.graph._emit import Emission, Plan, Value
from tfsafe.graph._flags import stacked, summed, total_of
from tfsafe.graph._functions import (
    PLAIN_CALLS,
    UnreadableError,
    bodies,
    earlier,
    family,
    has_plain_calls,
    in_order,
    is_call,
    is_compiled,
    loop_graphs,
    maximum_iterations,
    note_bodies,
    note_order,
    results_in_bodies,
    unchanged,
)
from tfsafe.graph._liveness import (
    has_effect,
    live_operations,
    live_variables,
    upstream,
)
from tfsafe.graph._op_facts import (
    ADDITIONS,
    DIVISIONS,
    MATRIX_PRODUCTS,
    OP_FACTS,
    RECIPROCALS,
    SEGMENT_SUMS,
    SUMS,
    OpFact,
    OpFacts,
    op_types,
)
from tfsafe.graph._places import (
    Place,
    body_of,
    is_in_a_formula,
    is_library_code,
    is_optimizer_of_keras,
    is_user_file,
    is_user_function,
    locate,
    locate_all,
    note_places,
    note_stable,
    position_on_line,
    replacements,
)
from tfsafe.graph._replay import (
    Drawing,
    Executed,
    Replay,
    drawing,
    is_drawn,
    raw_kernel,
)
from tfsafe.graph._stacks import (
    Frame,
    is_of_library,
    site_of,
    split_frames,
    stacks_kept,
)
from tfsafe.graph._traced_call import TracedCall, Wrapper, resemble
from tfsafe.graph._written import READERS, written_inputs

__all__ = [
    "ADDITIONS",
    "DIVISIONS",
    "MATRIX_PRODUCTS",
    "OP_FACTS",
    "PLAIN_CALLS",
    "READERS",
    "RECIPROCALS",
    "SEGMENT_SUMS",
    "SUMS",
    "Drawing",
    "Emission",
    "Executed",
    "Frame",
    "OpFact",
    "OpFacts",
    "Place",
    "Plan",
    "Replay",
    "TracedCall",
    "UnreadableError",
    "Value",
    "Wrapper",
    "bodies",
    "body_of",
    "dataset_family",
    "drawing",
    "earlier",
    "family",
    "has_effect",
    "has_plain_calls",
    "in_order",
    "is_call",
    "is_compiled",
    "is_custom",
    "is_drawn",
    "is_in_a_formula",
    "is_library_code",
    "is_of_library",
    "is_optimizer_of_keras",
    "is_user_file",
    "is_user_function",
    "live_operations",
    "live_variables",
    "locate",
    "locate_all",
    "loop_graphs",
    "maximum_iterations",
    "note_bodies",
    "note_order",
    "note_places",
    "note_stable",
    "op_types",
    "position_on_line",
    "raw_kernel",
    "replacements",
    "resemble",
    "results_in_bodies",
    "site_of",
    "split_frames",
    "stacked",
    "stacks_kept",
    "summed",
    "total_of",
    "unchanged",
    "upstream",
    "written_inputs",
]
