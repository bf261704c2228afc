"""Reading a traced function, and running it again operation by operation."""

from tfsafe.graph._custom_gradients import is_custom
from tfsafe.graph._emit import Emission, Plan, Value
from tfsafe.graph._flags import summed
from tfsafe.graph._functions import (
    PLAIN_CALLS,
    READERS,
    UnreadableError,
    bodies,
    family,
    in_order,
    is_call,
    is_compiled,
    loop_graphs,
    maximum_iterations,
    note_bodies,
    unchanged,
    written_inputs,
)
from tfsafe.graph._liveness import has_effect, live_operations
from tfsafe.graph._op_facts import OP_FACTS, OpFact, OpFacts, op_types
from tfsafe.graph._places import (
    Place,
    body_of,
    is_keras_code,
    is_ours,
    is_user_file,
    is_user_function,
    locate,
    locate_all,
    note_places,
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
from tfsafe.graph._stacks import Frame, site_of, split_frames, stacks_kept
from tfsafe.graph._traced_call import TracedCall, Wrapper, resemble

__all__ = [
    "OP_FACTS",
    "PLAIN_CALLS",
    "READERS",
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
    "drawing",
    "family",
    "has_effect",
    "in_order",
    "is_call",
    "is_compiled",
    "is_custom",
    "is_drawn",
    "is_keras_code",
    "is_ours",
    "is_user_file",
    "is_user_function",
    "live_operations",
    "locate",
    "locate_all",
    "loop_graphs",
    "maximum_iterations",
    "note_bodies",
    "note_places",
    "op_types",
    "raw_kernel",
    "replacements",
    "resemble",
    "site_of",
    "split_frames",
    "stacks_kept",
    "summed",
    "unchanged",
    "written_inputs",
]
