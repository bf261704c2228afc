"""Reading a traced function, and running it again operation by operation."""

from tfsafe.graph._emit import Emission, Plan, Value
from tfsafe.graph._functions import UnreadableError, family, is_compiled, written_inputs
from tfsafe.graph._places import (
    Frame,
    Place,
    is_user_file,
    locate,
    site_of,
    split_frames,
)
from tfsafe.graph._replay import Drawing, Executed, Replay, drawing, is_drawn

__all__ = [
    "Drawing",
    "Emission",
    "Executed",
    "Frame",
    "Place",
    "Plan",
    "Replay",
    "UnreadableError",
    "Value",
    "drawing",
    "family",
    "is_compiled",
    "is_drawn",
    "is_user_file",
    "locate",
    "site_of",
    "split_frames",
    "written_inputs",
]
