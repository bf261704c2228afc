"""Reading a traced function, and running it again operation by operation."""

from tfsafe.graph._functions import UnreadableError, family, is_compiled, written_inputs
from tfsafe.graph._places import (
    Frame,
    Place,
    is_user_file,
    locate,
    site_of,
    split_frames,
)
from tfsafe.graph._replay import Executed, Replay

__all__ = [
    "Executed",
    "Frame",
    "Place",
    "Replay",
    "UnreadableError",
    "family",
    "is_compiled",
    "is_user_file",
    "locate",
    "site_of",
    "split_frames",
    "written_inputs",
]
