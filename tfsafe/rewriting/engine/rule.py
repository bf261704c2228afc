"""What a rewrite rule is."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import tensorflow as tf

# Gives, for a tensor of the graph that is read, the one that stands for it in the
# graph that is made.
Value = Callable[[tf.Tensor], tf.Tensor]
# Makes the output that takes the place of an operation's.
Build = Callable[[Value], tf.Tensor]


class Rule(NamedTuple):
    """A formula, and what is to be computed in its place.

    Attributes:
      name: What `rules=` and `exclude=` call it, such as `"log-of-softmax"`.
      before: The formula as people write it.
      after: The stable form.
      fails: When the formula fails.
      reference: Where the stable form comes from.
      op_types: Types of the operation that the formula ends in.
      match: Takes such an operation and the reader of its graph; returns how to build
        its output, or None where the formula is another one.
    """

    name: str
    before: str
    after: str
    fails: str
    reference: str
    op_types: Sequence[str]
    match: Callable[[tf.Operation, Any], Build | None]
