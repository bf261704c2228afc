"""Defines what a rewrite rule is: one row, whatever it recognises."""

import dataclasses
from collections.abc import Callable, Collection, Sequence
from typing import Literal

import tensorflow as tf

from tfsafe.rewriting.facts.tensors import Reader

# Returns, for a tensor of the graph that is read, its counterpart in the new graph.
Value = Callable[[tf.Tensor], tf.Tensor]
# Makes the output that replaces an operation's; of a loop, the list of all outputs.
Build = Callable[[Value], tf.Tensor]
Match = Callable[[tf.Operation, Reader], Build | None]


@dataclasses.dataclass(frozen=True, kw_only=True, eq=False)
class Rule:
    """A formula, and what to compute in its place.

    Attributes:
      name: What `rules=` and `exclude=` call it, such as `"log-of-softmax"`.
      before: The formula as people write it.
      after: The stable form.
      fails_when: When the formula fails.
      reference: Where the stable form comes from.
      match: Takes the operation that a formula ends in and the reader of its graph;
        returns how to build its output, or None if the formula is another one. For a
        formula that is a fixed tree: `match.trees.Trees`.
      op_types: Types of the operation that the formula ends in; `Trees` know theirs.
      changes: `"gradient"` if the values stay the same. Such a rule is tried only where
        a gradient may be taken.
      removes_bias: Whether the formula differs from the stable form on purpose, by a
        guard such as an epsilon; `verify=True` then warns and keeps the rewrite.
    """

    name: str
    before: str
    after: str
    fails_when: str
    reference: str
    match: Match
    op_types: Collection[str] = ()
    changes: Literal["value", "gradient"] = "value"
    removes_bias: bool = False

    def __post_init__(self) -> None:
        """Takes the operation types of fixed trees."""
        if not self.op_types:
            object.__setattr__(self, "op_types", getattr(self.match, "op_types", ()))
        if not self.op_types:
            raise ValueError(f"The rule {self.name!r} names no type of operation.")


def first(
    rules: Sequence[Rule], op: tf.Operation, reader: Reader
) -> tuple[Rule, Build] | None:
    """Returns the first of some rules that makes an operation, and how."""
    for rule in rules:
        build = rule.match(op, reader) if op.type in rule.op_types else None
        if build is not None:
            return rule, build
    return None
